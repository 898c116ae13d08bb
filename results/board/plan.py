"""The published runs of the board: strategies of ours and of others on the reference list.

The runs of 10,000 evaluations are not ranked: they look for the best known gain, of which the others' are shares.
"""

from dataclasses import replace

from bbo_suite import Plan
from bbo_suite.board.reference import reference_list

LIST = reference_list()
STRATEGIES = [
    *("random", "annealing", "evolution", "local", "mbo"),
    *("nevergrad:DiscreteLenglerOnePlusOne", "optuna:NSGAIISampler"),
    *("published:hybrid-vndx", "published:tensor-comprehensions"),
]
CHEAP = [task.problem for task in LIST.tasks if 1_000 in task.budgets]

PLANS = [
    *LIST.plans(STRATEGIES),
    Plan(CHEAP, ["annealing", "local"], budgets=(10_000,), seeds=3, batch=LIST.batch, plain_seeds=True),
    *(replace(plan, budgets=(50, 200)) for plan in LIST.plans(["graybox"])),  # 1,000 take minutes a run
]
