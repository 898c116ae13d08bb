"""Repeats the study on more orderings and Ehrlich functions: do its findings hold on others drawn like them?

    python results/strategies/sequences.py [--budget 10000]

Runs are kept under `results/sequences-BUDGET` and resumed. They are added to `sequences-runs.csv`.
From all of these, `sequences.csv` is written: for each budget, family and strategy the mean speedup over twelve tasks,
the number of runs that found the optimum of an Ehrlich function (the optimum of an ordering is not known), and the
p-value of the difference from mbo (Wilcoxon, paired by task, two-sided).
"""

from __future__ import annotations

import pandas as pd
import typer
from scipy.stats import wilcoxon
from study import HERE, gather

import bbo_suite

TASKS = [f"ehrlich/{shape}#{k}" for shape in ("32x32-a", "64x32-a", "128x32-a") for k in (1, 2, 3, 4)]
TASKS += [f"ordering/{shape}#{k}" for shape in ("40x50-a", "40x50-b", "100x60-a") for k in (1, 2, 3, 4)]
STRATEGIES = ("annealing", "evolution", "mbo", "portfolio", "rl", "nevergrad:DiscreteLenglerOnePlusOne")


def compared(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each budget, family and strategy."""
    rows = []
    for (budget, family), part in runs.groupby(["budget", runs["problem"].str.partition("/")[0]]):
        means = part.pivot_table(index="problem", columns="strategy", values="speedup").round(9)  # equal ones are ties
        for name, own in part.groupby("strategy"):
            row = {"budget": budget, "family": family, "strategy": name, "tasks": means[name].count(), "runs": len(own)}
            row |= {"mean": means[name].mean(), "optimal": sum(own["best"] < 1 + 1e-9) if family == "ehrlich" else None}
            rows.append(row | {"p": 1.0 if name == "mbo" else wilcoxon(means[name], means["mbo"]).pvalue})
    return pd.DataFrame(rows).sort_values(["budget", "family", "mean"])


def main(budget: int = 10_000, repeats: int = 5, jobs: int = 2) -> None:
    """Do the runs that are missing and write both tables."""
    settings = {"repeats": repeats, "jobs": jobs, "study": f"sequences-{budget}", "results": HERE.parent}
    bbo_suite.run(STRATEGIES, TASKS, budget=budget, quiet=False, **settings)
    runs = gather("sequences", HERE / "sequences-runs.csv")
    runs.to_csv(HERE / "sequences-runs.csv", index=False, float_format="%.10g")
    compared(runs).to_csv(HERE / "sequences.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    typer.run(main)
