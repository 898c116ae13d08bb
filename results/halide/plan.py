"""What does search gain on Halide schedules, over the default?"""

from bbo_suite import Plan

PIPELINES = ["halide/blur", "halide/matmul", "halide/harris"]
PLAN = Plan(PIPELINES, ["annealing", "random"], budgets=(120,), batch=10)
