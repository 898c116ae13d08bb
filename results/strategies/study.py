"""Which strategy with n evaluations, and what are structure and parts worth, on tasks that tell strategies apart?

    python results/strategies/study.py choose               # tasks.csv: by the rule of tasks.py
    python results/strategies/study.py run [--seeds 10]      # BUDGET-runs.csv: only the runs that they lack
    python results/strategies/study.py check [--strategy annealing]   # makes runs of the first seed again
    python results/strategies/study.py tables                # gains.csv, verdicts.csv, gain.png

Runs are made in this process, in batches of 20. On several machines: run parts by `--task`, and join the tables of
runs, `BUDGET-runs.csv`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

import bbo_suite
from bbo_suite import UserError
from bbo_suite.core.level import LEVEL
from bbo_suite.registry import Registry
from bbo_suite.testing import play, start

HERE = Path(__file__).parent
BATCH, BUDGETS = 20, (50, 200, 1_000, 10_000)
MARKS = (20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
"""Evaluations after which the gain is kept."""


class Entry(NamedTuple):
    """A strategy of the study.

    Attributes:
      seeds: how many, by budget.
      prefix: True if a strategy ignores its budget. It has the longest alone: shorter runs begin it.
      joint: budgets that it runs on joint tasks only.
    """

    strategy: str
    seeds: dict[int, int]
    options: Mapping[str, object] = MappingProxyType({})
    prefix: bool = False
    joint: tuple[int, ...] = ()


FEW, LARGE = 3, 10_000
FEWER = {"graybox": {50: FEW, 200: FEW, 1_000: 1, 10_000: 0}, "rl": {10_000: 1}}
"""Seeds on tasks of more than `LARGE` parameters: a run of `graybox` takes up to a minute there, one of `rl` seven."""
TUNED = json.loads((HERE / "tuning" / "pymoo-GA.json").read_text(encoding="utf-8"))["options"]
NEVERGRAD = tuple(f"nevergrad:{name}OnePlusOne" for name in ("DiscreteLengler", "SmoothDiscrete"))
ENTRIES = {
    **{name: Entry(name, dict.fromkeys(BUDGETS, 10)) for name in ("annealing", "evolution", "local", "mbo")},
    "joint": Entry("joint", dict.fromkeys(BUDGETS, 10), joint=BUDGETS),
    "graybox": Entry("graybox", {50: 10, 200: 10, 1_000: FEW, 10_000: 1}, joint=BUDGETS[2:]),
    "portfolio": Entry("portfolio", {10_000: 10}, joint=BUDGETS),
    "rl": Entry("rl", {10_000: FEW}, joint=BUDGETS),
    **{name: Entry(name, dict.fromkeys(BUDGETS[1:], 10)) for name in NEVERGRAD},
    "pymoo:GA": Entry("pymoo:GA", {10_000: 10}, prefix=True),
    "pymoo:GA, tuned": Entry("pymoo:GA", {10_000: 10}, TUNED, prefix=True),
    "random": Entry("random", {10_000: 10}, prefix=True),
}
KEY = ["problem", "strategy", "budget", "seed"]


def run(task_id: str, name: str, budget: int, seed: int) -> dict[str, object]:
    """Return the row of a run, with its gains in percent at `MARKS`, and a digest of its candidates and costs."""
    strategy, options = ENTRIES[name].strategy, ENTRIES[name].options
    problem, spent, state = bbo_suite.problem(task_id), 0.0, blake2b(digest_size=4)
    task, found = problem.task(True, None, True), Registry().strategy(strategy)

    def cost(configs: NDArray) -> NDArray[np.float64]:
        nonlocal spent
        begin = time.process_time()
        values = problem.evaluate(configs).values
        spent += time.process_time() - begin
        state.update(configs.astype("<i4").tobytes() + values.astype("<f8").tobytes())
        return values

    parts = (lambda configs: problem.evaluate_parts(configs).parts) if found.level >= 2 else None
    default = float(problem.evaluate(problem.default[None]).values[0])
    if parts and parts(problem.default[None]) is None:
        raise UserError(f"{task_id} tells no costs of parts: {strategy} does not run")
    begin = time.process_time()
    search = start(found, task.space, budget, seed, task.structure, task.default, **options)
    costs = np.concatenate([values for _, values in play(search, cost, BATCH, parts)])
    own = time.process_time() - begin - spent
    row = {"problem": task_id, "strategy": name, "budget": budget, "seed": seed, LEVEL: found.level.word}
    row |= {"default": f"{default:.10g}", "best": f"{costs.min():.10g}", "evaluations": len(costs)}
    row |= {"strategy_seconds": f"{own:.3g}", "evaluation_seconds": f"{spent:.3g}", "digest": state.hexdigest()}
    if budget < BUDGETS[-1]:
        return row
    gains = 100 * (default / np.minimum(np.minimum.accumulate(costs), default) - 1)
    return row | {str(n): f"{gains[min(n, len(gains)) - 1]:.4g}" for n in MARKS}


def wanted(seeds: int, tasks: list[str]) -> Iterator[tuple[str, str, int, int]]:
    """Yield task, strategy, budget and seed of each run, seed by seed, short budgets first."""
    for seed in range(seeds):
        for budget in BUDGETS:
            for name, entry in ENTRIES.items():
                for task in tasks if seed < entry.seeds.get(budget, 0) else ():
                    if fits(name, task, budget, seed):
                        yield task, name, budget, seed


def fits(name: str, task: str, budget: int, seed: int) -> bool:
    """True if a strategy runs on a task with this budget and seed."""
    if budget in ENTRIES[name].joint and not task.startswith("joint/"):
        return False
    few = FEWER.get(name, {}).get(budget)
    return few is None or seed < few or len(bbo_suite.problem(task).space) <= LARGE


def known_runs() -> pd.DataFrame:
    """Return all runs that are there."""
    files = [HERE / f"{budget}-runs.csv" for budget in BUDGETS]
    return pd.concat(
        [pd.DataFrame(columns=KEY), *(pd.read_csv(file, dtype={"digest": str}) for file in files if file.exists())]
    )


def make(seeds: int, tasks: list[str], strategies: list[str]) -> None:
    """Make the runs that are missing, and add each to the table of its budget at once."""
    done, refused = set(known_runs()[KEY].itertuples(index=False, name=None)), set[tuple[str, str]]()
    for key in wanted(seeds, tasks):
        if key in done or key[:2] in refused or (strategies and key[1] not in strategies):
            continue
        try:
            row = run(*key)
        except UserError as error:
            refused.add(key[:2])
            print(error, flush=True)
            continue
        file = HERE / f"{key[2]}-runs.csv"
        pd.DataFrame([row]).to_csv(file, mode="a", header=not file.exists(), index=False)


def check(tasks: list[str], strategies: list[str]) -> None:
    """Make runs of the first seed again, and name those whose digest differs."""
    runs = known_runs()
    again = runs[(runs["seed"] == 0) & runs["problem"].isin(tasks) & runs["strategy"].isin(strategies or list(ENTRIES))]
    different = 0
    for _, row in again.iterrows():
        if (found := run(*(row[name] for name in KEY))["digest"]) != row["digest"]:
            different += 1
            print(*(row[name] for name in KEY), row["digest"], "is now", found)
    print(f"{len(again):,} runs made again, {different} differ")


def main(
    part: str,
    seeds: int = 10,
    task: Annotated[list[str] | None, typer.Option(help="tasks, those of tasks.csv by default")] = None,
    strategy: Annotated[list[str] | None, typer.Option(help="strategies, all by default")] = None,
) -> None:
    """Make one part: choose, run, check or tables."""
    if part == "choose":
        from tasks import choose

        return choose()
    chosen = pd.read_csv(HERE / "tasks.csv")
    tasks = task or list(chosen[chosen["taken"]]["task"])
    if part == "run":
        return make(seeds, tasks, strategy or [])
    if part == "check":
        return check(tasks, strategy or [])
    from tables import write

    return write(HERE)


if __name__ == "__main__":
    typer.run(main)
