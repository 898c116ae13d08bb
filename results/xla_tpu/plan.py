"""What does a search gain on small blocks with the XLA:TPU compiler, as they are and careful (`careful.py`)?"""

from bbo_suite import Plan

BLOCKS = ("transformer", "attention", "mlp", "conv", "lstm", "dlrm", "norm")
TASKS = [f"{family}/{block}" for block in BLOCKS for family in ("xla-tpu", "careful")]
PLAN = Plan(TASKS, ["annealing"], budgets=(300,), batch=10)
