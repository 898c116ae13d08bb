"""Which tasks the study has; `study.py choose` calls it.

The rule: in each family, candidates come in the order of a digest of their names. A candidate is taken if, in a pilot
of four strategies with a seed that the study does not use, the best gain at 10,000 evaluations is 0.5 % or more, and at
most half of the four reach 97 % of it, and 10,000 evaluations take annealing 20 s or less. The first `TAKEN` of a
family are taken, of at most `LOOKED_AT`.
"""

from __future__ import annotations

from hashlib import blake2b

import pandas as pd
from study import BUDGETS, HERE, run

import bbo_suite
from bbo_suite import UserError
from bbo_suite.registry import Registry

CHOSE = ("resnet_v2", "ssd", "translate", "convdraw", "moe", "/train-", "small", "sharding/rnn", "scratchpad/lstm")
CHOSE += ("/bert@2", "wavernn", "tile/bert-tiny-infer-b64-s128")
"""Parts of the names of tasks on which a setting was chosen."""
DRAWN = {"ordering": ("40x50-a", "40x50-b", "100x60-a"), "ehrlich": ("32x32-a", "64x32-a", "128x32-a")}
"""Families whose tasks are drawn by number: numbers that no study used."""
LANGUAGE = ("gpt2", "bert", "nmt", "transformer")
FAMILIES = (
    "sharding",
    "scratchpad",
    "joint",
    "kernel",
    "flags",
    "several",
    "ordering",
    "ehrlich",
    "fusion",
    "tile",
    "layout",
)
PILOT, PILOT_SEED = ("random", "annealing", "evolution", "local"), 100
LEAST_GAIN, NEAR, SLOW = 0.5, 0.97, 20.0
TAKEN, LOOKED_AT, LEAST, MOST = 4, 8, 30, 18_000


def candidates(family: str) -> list[str]:
    """Return the tasks of a family that chose no setting, in the order of their digests; joint: language models."""
    if family == "several":
        return [f"several:ordering/{s}#{k}+ordering/{s}#{k + 1}" for k in (301, 303) for s in DRAWN["ordering"][:2]]
    names = [str(name) for name in Registry().families()[family]().instances]
    if family in DRAWN:
        names = [f"{shape}#{number}" for shape in DRAWN[family] for number in (201, 202)]
    if family == "joint":
        names = [name for name in names if name.startswith(LANGUAGE)]
    tasks = [f"{family}/{name}" for name in names]
    unseen = [task for task in tasks if not any(part in task for part in CHOSE)]
    return sorted(unseen, key=lambda task: blake2b(task.encode()).digest())


def piloted(task: str) -> dict[str, object]:
    """Return the row of `tasks.csv` of a candidate."""
    row: dict[str, object] = {"family": task.replace(":", "/").partition("/")[0], "task": task}
    size = len(bbo_suite.problem(task).space)
    row["parameters"] = size
    if not (2_000 if task.startswith("joint") else LEAST) <= size <= MOST:
        return row | {"taken": False, "reason": "size"}
    runs = {name: run(task, name, BUDGETS[-1], PILOT_SEED) for name in PILOT}
    gains = {name: float(row[str(BUDGETS[-1])]) for name, row in runs.items()}
    best = max(gains.values())
    near = sum(gain >= NEAR * best for gain in gains.values())
    reason = "gain" if best < LEAST_GAIN else "no spread" if 2 * near > len(PILOT) else ""
    reason = reason or ("slow" if float(runs["annealing"]["evaluation_seconds"]) > SLOW else "")
    return row | gains | {"best": best, "near": near, "taken": not reason, "reason": reason}


def choose() -> None:
    """Write `tasks.csv`: every candidate that was looked at, and why it was taken or not."""
    rows: list[dict[str, object]] = []
    for family in FAMILIES:
        taken = looked = 0
        for task in candidates(family):
            if taken == TAKEN or looked == LOOKED_AT:
                break
            try:
                rows.append(piloted(task))
            except UserError as error:  # nothing can be tuned in a program
                print(error)
                continue
            taken, looked = taken + bool(rows[-1]["taken"]), looked + (rows[-1]["reason"] != "size")
            print(rows[-1], flush=True)
            pd.DataFrame(rows).to_csv(HERE / "tasks.csv", index=False, float_format="%.4g")
