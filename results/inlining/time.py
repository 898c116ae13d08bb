"""Inlining for time over -O3, on the four large programs with the most calls to decide."""

from bbo_suite import Plan

MODULES = [f"inlining/{name}@time" for name in ("script", "digest", "json", "matrices")]
PLANS = [Plan(MODULES, [each], budgets=(100,), batch=10, cutoffs=(20, 50)) for each in ("local", "annealing")]
