"""Inlining for time over -O3, on the three programs with the most calls to decide."""

from bbo_suite import Plan

PLAN = Plan(
    [f"inlining/{name}@time" for name in ("script", "digest", "json")],
    ["local"],
    budgets=(100,),
    batch=10,
    cutoffs=(20, 50),
)
