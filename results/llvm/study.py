"""The order of LLVM's passes on all programs that ship, against -Oz: random search, ours and peers.

    python results/llvm/study.py [--budget 300]
    python results/llvm/study.py --budget 100000 --max-seconds 10    # equal times; with optimizers of other libraries

Runs are kept under `results/llvm-BUDGET` or `results/llvm-BUDGET-SECONDSs`, program after program, and resumed. Writes
`runs.csv`, or `runs-SECONDSs.csv`, from all programs that are through, and prints the geometric means;
README.md says what they show.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

import bbo_suite
from bbo_problems.llvm.problem import LlvmProblem
from bbo_suite.stats.intervals import mean_interval
from bbo_suite.store.summary import summarise

HERE = Path(__file__).parent
STRATEGIES = ("random", "annealing", "evolution", "mbo")
PEERS = ("nevergrad:DiscreteLenglerOnePlusOne", "pymoo:GA")
COLUMNS = ["problem", "strategy", "seed", "evaluations", "unique", "failed", "default", "best", "speedup"]
COLUMNS += ["uses_structure"]
SECONDS = ["strategy_seconds", "evaluation_seconds"]


def collect(study: str, names: tuple[str, ...]) -> pd.DataFrame:
    """Return one row for each run of the programs on which all strategies that are named are through."""
    folders = sorted(path.parent for path in (HERE.parent / study).glob("*/end.json"))
    runs = pd.DataFrame([summarise(folder) for folder in folders])[COLUMNS + SECONDS]
    return runs[runs.groupby("problem")["strategy"].transform("nunique") == len(names)]


def perform(strategy: str, name: str, study: str, budget: int, max_seconds: float | None) -> None:
    """Do or finish one run; where time is what counts, nothing is known from an earlier one."""
    problem_id = f"llvm/{name}"
    if max_seconds:
        problem = bbo_suite.problem(problem_id)
        assert isinstance(problem, LlvmProblem)
        problem.leave_cache()
        problem._workers.close()  # children remember, too
    where = HERE.parent
    bbo_suite.run(
        strategy, problem_id, study=study, results=where, budget=budget, batch=10, jobs=1, max_seconds=max_seconds
    )


def means(runs: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """Return for each strategy the geometric mean over programs of the speedup, with a 95 % interval, and the time."""
    found = {}
    for strategy in names:
        own = runs[runs["strategy"] == strategy]
        mean, low, high = np.exp(mean_interval(np.log(own["speedup"])))
        seconds = own[SECONDS].sum(axis=1).mean()
        gains, tried = (own["speedup"] > 1).sum(), own["evaluations"].mean()
        found[strategy] = [len(own), mean, low, high, own["speedup"].max(), gains, tried, seconds]
    columns = ["programs", "geometric mean", "low", "high", "largest", "gaining", "evaluations", "seconds a program"]
    return pd.DataFrame.from_dict(found, orient="index", columns=columns)


def main(
    budget: int = 300,
    max_seconds: Annotated[float | None, typer.Option(help="Ends a run by time, too; no cache is used then.")] = None,
    table: Annotated[bool, typer.Option(help="Only the table of what is there.")] = False,
) -> None:
    """Do the runs that are missing, in one process, and write the table of all."""
    suffix = f"-{max_seconds:g}s" if max_seconds else ""
    study, strategies = f"llvm-{budget}{suffix}", (*STRATEGIES, *PEERS) if max_seconds else STRATEGIES
    for name in () if table else LlvmProblem.instances:
        for strategy in strategies:
            perform(strategy, name, study, budget, max_seconds)
        print(name, flush=True)
    runs = collect(study, strategies)
    runs.to_csv(HERE / f"runs{suffix}.csv", index=False, float_format="%.10g")
    print(means(runs, strategies).to_string(float_format="%.4f"))


if __name__ == "__main__":
    typer.run(main)
