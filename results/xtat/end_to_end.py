"""What tuning layout, fusion, tiles and flags gains on every program: XTAT's schedule, and `graybox` after 200."""

from bbo_problems.tensor_compiler.tasks.programs import names
from bbo_suite import Plan

ALL = [f"joint/{name}" for name in names()]
PLANS = [
    Plan(ALL, ["joint"], budgets=(5_000,), batch=20),
    Plan(ALL, ["graybox"], budgets=(200,), batch=20),
]
