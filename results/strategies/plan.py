"""Which strategy with n evaluations, and what are structure and parts worth, on tasks that tell strategies apart?

Tasks were chosen by the rule in README.md. Draws follow from the seed alone, as they did in the first runs.
"""

import csv
import json
from functools import partial
from pathlib import Path

from bbo_suite import Plan, Search

HERE = Path(__file__).parent
BUDGETS = (50, 200, 1_000, 10_000)
CUTOFFS = (20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
CHOSEN = [row for row in csv.DictReader((HERE / "tasks.csv").open(encoding="utf-8")) if row["taken"] == "True"]
TASKS = [row["task"] for row in CHOSEN]
JOINT = [task for task in TASKS if task.startswith("joint/")]
LARGE = [row["task"] for row in CHOSEN if int(row["parameters"]) > 10_000]
SMALL = [task for task in TASKS if task not in LARGE]
TUNED = json.loads((HERE / "tuning" / "pymoo-GA.json").read_text(encoding="utf-8"))["options"]
NEVERGRAD = [f"nevergrad:{name}OnePlusOne" for name in ("DiscreteLengler", "SmoothDiscrete")]
PEERS = {**{name: name for name in [*NEVERGRAD, "pymoo:GA"]}, "pymoo:GA, tuned": Search("pymoo:GA", TUNED)}


runs = partial(Plan, budgets=BUDGETS, seeds=10, batch=20, cutoffs=CUTOFFS, plain_seeds=True)


PLANS = [
    runs(TASKS, ["annealing", "evolution", "local", "mbo"]),
    runs(JOINT, ["joint"]),
    runs(SMALL, ["graybox"], budgets=(50, 200)),
    runs(LARGE, ["graybox"], budgets=(50, 200), seeds=3),
    runs([task for task in JOINT if task in SMALL], ["graybox"], budgets=(1_000,), seeds=3),
    runs([task for task in JOINT if task in LARGE], ["graybox"], budgets=(1_000,), seeds=1),
    runs([task for task in JOINT if task in SMALL], ["graybox"], budgets=(10_000,), seeds=1),
    runs(JOINT, ["portfolio"], budgets=(10_000,), seeds=3),
    runs([task for task in JOINT if task in SMALL], ["rl"], budgets=(10_000,), seeds=3),
    runs([task for task in JOINT if task in LARGE], ["rl"], budgets=(10_000,), seeds=1),
    runs(TASKS, NEVERGRAD, budgets=(200, 1_000)),
    runs(TASKS, ["random"], budgets=(10_000,)),
    runs([task for task in TASKS if task not in JOINT], PEERS, budgets=(10_000,)),
    runs(JOINT, PEERS, budgets=(10_000,), seeds=3),  # a run takes minutes there
]
