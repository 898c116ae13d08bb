"""Which simulated tasks tell strategies apart? Writes the rows of some families in tasks.csv anew; README has the rule.

python results/strategies/tasks.py fusion tile    # after the cost of a family's problems changed
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pandas as pd

import bbo_suite
from bbo_suite import UserError
from bbo_suite.registry import Registry

TASKS = Path(__file__).with_name("tasks.csv")
CHOSE = ("resnet_v2", "ssd", "translate", "convdraw", "moe", "/train-", "small", "sharding/rnn", "scratchpad/lstm")
CHOSE += ("/bert@2", "wavernn", "tile/bert-tiny-infer-b64-s128")
"""Parts of the names of tasks on which a setting was chosen."""
DRAWN = {"ordering": ("40x50-a", "40x50-b", "100x60-a"), "ehrlich": ("32x32-a", "64x32-a", "128x32-a")}
"""Families whose tasks are drawn by number: numbers that no study used."""
LANGUAGE = ("gpt2", "bert", "nmt", "transformer")
PILOT, SEED, EVALUATIONS = ("random", "annealing", "evolution", "local"), 100, 10_000
LEAST_GAIN, NEAR, SLOW = 0.5, 0.97, 20.0
TAKEN, LOOKED_AT, LEAST, LEAST_JOINT, MOST = 4, 8, 30, 2_000, 18_000


def candidates(family: str) -> list[str]:
    """Return the tasks of a family on which no setting was chosen, in the order of their digests."""
    names = [str(name) for name in Registry().families()[family]().instances] if family != "several" else []
    if family in DRAWN:
        names = [f"{shape}#{number}" for shape in DRAWN[family] for number in (201, 202)]
    if family == "joint":
        names = [name for name in names if name.startswith(LANGUAGE)]
    tasks = [f"{family}/{name}" for name in names]
    if family == "several":
        tasks = [f"several:ordering/{s}#{k}+ordering/{s}#{k + 1}" for k in (301, 303) for s in DRAWN["ordering"][:2]]
    unseen = [task for task in tasks if not any(part in task for part in CHOSE)]
    return sorted(unseen, key=lambda task: blake2b(task.encode()).digest())


def piloted(family: str, task: str) -> dict[str, object]:
    """Return a row of `tasks.csv`: the gains of the pilot in percent, and why the task is taken or not."""
    problem = bbo_suite.problem(task)
    row: dict[str, object] = {"family": family, "task": task, "parameters": len(problem.space)}
    if not (LEAST_JOINT if family == "joint" else LEAST) <= len(problem.space) <= MOST:
        return row | {"taken": False, "reason": "size"}
    gains, seconds = dict[str, float](), dict[str, float]()
    for name in PILOT:
        batches = [*bbo_suite.search(name, problem, EVALUATIONS, seed=SEED)]
        costs = np.concatenate([batch.values for batch in batches])
        gains[name] = 100 * float(costs[0] / costs.min() - 1)  # the default is the first candidate
        seconds[name] = sum(float(np.sum(batch.evaluations.seconds)) for batch in batches)
    best = max(gains.values())
    near = sum(gain >= NEAR * best for gain in gains.values())
    reason = "gain" if best < LEAST_GAIN else "no spread" if 2 * near > len(PILOT) else ""
    reason = reason or ("slow" if seconds["annealing"] > SLOW else "")
    return row | gains | {"best": best, "near": near, "taken": not reason, "reason": reason}


def chosen(family: str) -> Iterator[dict[str, object]]:
    """Yield a row for each task of a family that is looked at."""
    taken = looked = 0
    for task in candidates(family):
        if taken == TAKEN or looked == LOOKED_AT:
            return
        try:
            row = piloted(family, task)
        except UserError as error:  # nothing can be tuned in a program
            print(error)
            continue
        taken, looked = taken + bool(row["taken"]), looked + (row["reason"] != "size")
        print(row, flush=True)
        yield row


if __name__ == "__main__":
    known = pd.read_csv(TASKS)
    for family in sys.argv[1:]:
        rows = pd.DataFrame(chosen(family), columns=known.columns)
        known = pd.concat([known[known["family"] != family], rows])
        known.to_csv(TASKS, index=False, float_format="%.4g")
