"""The order of LLVM's passes on all programs that ship, against -Oz: random search and ours.

    python results/llvm/study.py [--budget 300]

Runs are kept under `results/llvm-BUDGET` and resumed. Writes `runs.csv` from all programs that are through, and prints
the geometric means; README.md says what they show.
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
from bbo_suite.store.results import summarise

HERE = Path(__file__).parent
STRATEGIES = ("random", "annealing", "evolution", "mbo")
COLUMNS = ["problem", "strategy", "seed", "evaluations", "unique", "failed", "default", "best", "speedup"]
COLUMNS += ["uses_structure"]
SECONDS = ["strategy_seconds", "evaluation_seconds"]


def collect(study: str) -> pd.DataFrame:
    """Return one row for each run of the programs on which all strategies are through."""
    folders = sorted(path.parent for path in (HERE.parent / study).glob("*/end.json"))
    runs = pd.DataFrame([summarise(folder) for folder in folders])[COLUMNS + SECONDS]
    return runs[runs.groupby("problem")["strategy"].transform("nunique") == len(STRATEGIES)]


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Return for each strategy the geometric mean over programs of the speedup, with a 95 % interval, and the time."""
    found = {}
    for strategy in STRATEGIES:
        own = runs[runs["strategy"] == strategy]
        mean, low, high = np.exp(mean_interval(np.log(own["speedup"])))
        seconds = own[SECONDS].sum(axis=1).mean()
        gains, tried = (own["speedup"] > 1).sum(), own["evaluations"].mean()
        found[strategy] = [len(own), mean, low, high, own["speedup"].max(), gains, tried, seconds]
    columns = ["programs", "geometric mean", "low", "high", "largest", "gaining", "evaluations", "seconds a program"]
    return pd.DataFrame.from_dict(found, orient="index", columns=columns)


def main(
    budget: int = 300, table: Annotated[bool, typer.Option(help="Only the table of what is there.")] = False
) -> None:
    """Do the runs that are missing, in one process, and write the table of all."""
    study, programs = f"llvm-{budget}", [f"llvm/{name}" for name in LlvmProblem.instances]
    if not table:
        bbo_suite.run(STRATEGIES, programs, study=study, results=HERE.parent, budget=budget, batch=10, jobs=1)
    runs = collect(study)
    runs.to_csv(HERE / "runs.csv", index=False, float_format="%.10g")
    print(means(runs).to_string(float_format="%.4f"))


if __name__ == "__main__":
    typer.run(main)
