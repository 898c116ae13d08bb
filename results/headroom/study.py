"""Which strategy with n evaluations, and what are structure and parts worth, on tasks that tell strategies apart?

    python results/headroom/study.py choose               # tasks.csv: by the rule below
    python results/headroom/study.py run [--seeds 10]      # runs.csv: only the runs that it lacks, seed by seed
    python results/headroom/study.py tables                # gains.csv, verdicts.csv, gain.png

The rule: in each family, candidates come in the order of a digest of their names. A candidate is taken if, in a pilot
of four strategies with a seed that the study does not use, the best gain at 10,000 evaluations is 0.5 % or more, and at
most half of the four reach 97 % of it. The first two of a family are taken, of at most `LOOKED_AT`. Runs are made in
this process, in batches of 20. On several machines: run parts by `--task`, and join the rows of runs.csv.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

import bbo_suite
from bbo_suite import UserError
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start

HERE = Path(__file__).parent
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
PILOT, PILOT_SEED, LEAST_GAIN, NEAR = ("random", "annealing", "evolution", "local"), 100, 0.5, 0.97
TAKEN, LOOKED_AT, LEAST, MOST = 2, 3, 30, 15_000
BATCH, BUDGETS = 20, (50, 200, 1_000, 10_000)
STRATEGIES: dict[str, tuple[tuple[int, ...], int]] = {
    "random": ((10_000,), 10),
    "annealing": (BUDGETS, 10),
    "evolution": (BUDGETS, 10),
    "local": (BUDGETS, 10),
    "mbo": ((50, 200, 1_000), 10),
    "nevergrad:DiscreteLenglerOnePlusOne": ((200, 1_000), 10),
    "graybox": ((50, 200), 10),
    "joint": (BUDGETS, 10),
}
"""Budgets, and seeds at most. `random` ignores its budget, so shorter budgets are prefixes of the longest."""
KEY = ["task", "strategy", "budget", "seed"]


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


def run(task_id: str, strategy: str, budget: int, seed: int) -> dict[str, object]:
    """Return the row of a run: gains in percent, evaluations to shares of its own gain, seconds, and its digest."""
    problem, spent, state = bbo_suite.problem(task_id), 0.0, blake2b(digest_size=8)
    task = problem.task(True, None, True)

    def cost(configs: NDArray) -> NDArray[np.float64]:
        nonlocal spent
        begin = time.process_time()
        values = problem.evaluate(configs).values
        spent += time.process_time() - begin
        state.update(configs.astype("<i4").tobytes() + values.astype("<f8").tobytes())
        return values

    parts = (lambda configs: problem.evaluate_parts(configs).parts) if strategy == "graybox" else None
    default = float(problem.evaluate(problem.default[None]).values[0])
    if parts and parts(problem.default[None]) is None:
        raise UserError(f"{task_id} tells no costs of parts: {strategy} does not run")
    begin = time.process_time()
    search = start(Registry().strategy(strategy), task.space, budget, seed, task.structure, task.default)
    costs = np.concatenate([values for _, values in play(search, cost, BATCH, parts)])
    own = time.process_time() - begin - spent
    gains = 100 * (default / np.minimum(np.minimum.accumulate(costs), default) - 1)
    at = {f"g{n}": gains[min(n, len(gains)) - 1] for n in BUDGETS if n <= budget}
    marks = {f"to{share}": int(np.argmax(gains >= share / 100 * gains[-1])) + 1 for share in (90, 99)}
    row = {"task": task_id, "strategy": strategy, "budget": budget, "seed": seed, "parameters": len(task.space)}
    return row | {"gain": gains[-1]} | at | marks | {"own": own, "evaluating": spent, "digest": state.hexdigest()}


def piloted(task: str) -> dict[str, object]:
    """Return the row of `tasks.csv` of a candidate."""
    row: dict[str, object] = {"family": task.replace(":", "/").partition("/")[0], "task": task}
    size = len(bbo_suite.problem(task).space)
    row["parameters"] = size
    if not (2_000 if task.startswith("joint") else LEAST) <= size <= MOST:
        return row | {"taken": False, "reason": "size"}
    gains = {name: float(run(task, name, BUDGETS[-1], PILOT_SEED)["gain"]) for name in PILOT}
    best = max(gains.values())
    near = sum(gain >= NEAR * best for gain in gains.values())
    reason = "gain" if best < LEAST_GAIN else "no spread" if 2 * near > len(PILOT) else ""
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


def wanted(seeds: int, tasks: list[str]) -> Iterator[tuple[str, str, int, int]]:
    """Yield task, strategy, budget and seed of each run, seed by seed, short budgets first."""
    for seed in range(seeds):
        for budget in BUDGETS:
            for strategy, (budgets, most) in STRATEGIES.items():
                if budget in budgets and seed < most:
                    fit = [task for task in tasks if strategy != "joint" or task.startswith("joint/")]
                    yield from ((task, strategy, budget, seed) for task in fit)


def make(seeds: int, tasks: list[str], strategies: list[str]) -> None:
    """Make the runs that are missing, and add each to `runs.csv` at once."""
    file, refused = HERE / "runs.csv", set[tuple[str, str]]()
    known = pd.read_csv(file)[KEY] if file.exists() else pd.DataFrame(columns=KEY)
    done = set(known.itertuples(index=False, name=None))
    for key in wanted(seeds, tasks):
        if key in done or key[:2] in refused or (strategies and key[1] not in strategies):
            continue
        try:
            row = run(*key)
        except UserError as error:
            refused.add(key[:2])
            print(error, flush=True)
            continue
        columns = [
            *KEY,
            "parameters",
            "gain",
            *(f"g{n}" for n in BUDGETS),
            "to90",
            "to99",
            "own",
            "evaluating",
            "digest",
        ]
        table = pd.DataFrame([row]).reindex(columns=columns)
        table.to_csv(file, mode="a", header=not file.exists(), index=False, float_format="%.5g")


def main(
    part: str,
    seeds: int = 10,
    task: Annotated[list[str] | None, typer.Option(help="tasks, those of tasks.csv by default")] = None,
    strategy: Annotated[list[str] | None, typer.Option(help="strategies, all by default")] = None,
) -> None:
    """Make one part: choose, run or tables."""
    if part == "choose":
        return choose()
    if part == "run":
        chosen = pd.read_csv(HERE / "tasks.csv")
        return make(seeds, task or list(chosen[chosen["taken"]]["task"]), strategy or [])
    from tables import write

    return write(HERE)


if __name__ == "__main__":
    typer.run(main)
