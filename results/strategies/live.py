"""Which strategy with equal time on compilers of this machine, beside optimizers of other libraries?

    python results/strategies/live.py run           # live.csv: only the programs that it lacks; 80 minutes
    python results/strategies/live.py tables        # prints the tables of README.md

Each run has the same wall time and no cache; strategies run in turns, program by program, with one worker.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import typer
from scipy.stats import wilcoxon

import bbo_suite
from bbo_suite.registry import Registry
from bbo_suite.stats import holm
from bbo_suite.stats.intervals import mean_interval
from bbo_suite.supervised import LiveProblem

HERE = Path(__file__).parent
FILE = HERE / "live.csv"
STRATEGIES = ("random", "annealing", "evolution", "mbo", "nevergrad:DiscreteLenglerOnePlusOne", "pymoo:GA")
COLUMNS = ["problem", "strategy", "seed", "evaluations", "unique", "failed", "default", "best", "speedup"]
COLUMNS += ["uses_structure", "strategy_seconds", "evaluation_seconds"]


class Compiler(NamedTuple):
    """Programs of a family: the first by a digest of their names, of those whose names end in one of `ends`."""

    seconds: float
    programs: int
    ends: tuple[str, ...] = ("",)


COMPILERS = {
    "llvm": Compiler(10, 33),
    "gcc": Compiler(20, 12),
    "xla-passes": Compiler(20, 10, ("-l1-infer",)),
}


def programs(family: str) -> list[str]:
    """Return the programs of a family that are run."""
    names = [f"{family}/{name}" for name in Registry().families()[family]().instances]
    chosen = [name for name in names if name.endswith(COMPILERS[family].ends)]
    return sorted(chosen, key=lambda name: blake2b(name.encode()).digest())[: COMPILERS[family].programs]


def run(name: str, strategy: str, seconds: float) -> dict[str, object]:
    """Return the row of a run that knows nothing from an earlier one."""
    problem = bbo_suite.problem(name)
    assert isinstance(problem, LiveProblem)
    problem.leave_cache()
    problem._workers.close()  # children remember, too
    how = {"budget": 100_000, "batch": 10, "jobs": 1, "max_seconds": seconds, "quiet": True}
    (row,) = bbo_suite.run(strategy, name, study=f"live-{seconds:g}s", results=HERE.parent, **how)
    return {column: row[column] for column in COLUMNS}


def make() -> None:
    """Make the runs that are missing, and write the table after each program."""
    known = pd.read_csv(FILE) if FILE.exists() else pd.DataFrame(columns=COLUMNS)
    for family, compiler in COMPILERS.items():
        for name in programs(family):
            if name in set(known["problem"]):
                continue
            rows = [run(name, strategy, compiler.seconds) for strategy in STRATEGIES]
            known = pd.concat([known, pd.DataFrame(rows)])
            known.to_csv(FILE, index=False, float_format="%.10g")
            print(name, *(f"{row['strategy']} {row['speedup']:.4f}" for row in rows), flush=True)


def compared(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each strategy: speedups over programs with a 95 % interval, and how it stands to two others.

    p is Wilcoxon's over the programs, with Holm's correction over the strategies that are compared with the same one.
    """
    speedups = runs.pivot_table(index="problem", columns="strategy", values="speedup")[list(STRATEGIES)]
    means = [np.exp(mean_interval(np.log(speedups[name]))) for name in STRATEGIES]
    found = pd.DataFrame(means, index=STRATEGIES, columns=["mean", "low", "high"])
    found["largest"], found["gaining"] = speedups.max(), (speedups > 1).sum()
    found["evaluations"] = runs.groupby("strategy")["evaluations"].mean().round()
    for base in ("random", "annealing"):
        others, by = speedups[base], speedups.drop(columns=["random", base], errors="ignore")
        found[f"over {base}"], found[f"under {base}"] = by.gt(others, axis=0).sum(), by.lt(others, axis=0).sum()
        p = [wilcoxon(by[name], others).pvalue if (by[name] != others).any() else 1.0 for name in by]
        found[f"p {base}"] = pd.Series(holm(p), index=by.columns)
    return found


def main(part: str) -> None:
    """Make one part: run or tables."""
    if part == "run":
        return make()
    runs = pd.read_csv(FILE)
    for family, own in runs.groupby(runs["problem"].str.partition("/")[0]):
        print(f"{family}, {own['problem'].nunique()} programs, {COMPILERS[family].seconds:g} s a run")
        print(compared(own).to_string(float_format="%.4g"), end="\n\n")


if __name__ == "__main__":
    typer.run(main)
