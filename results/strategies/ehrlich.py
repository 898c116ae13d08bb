"""Is what the study finds on two Ehrlich functions true of others that are drawn like them?

    python results/strategies/ehrlich.py

Runs are kept under `results/ehrlich-10000` and resumed. Writes `ehrlich.csv`: of each strategy the mean speedup over
twelve functions, in how many of all runs it found the optimum, and how likely it would be as far behind mbo, or ahead
of it, by chance (Wilcoxon, paired by function, two-sided).
"""

from __future__ import annotations

import pandas as pd
from scipy.stats import wilcoxon
from study import HERE

import bbo_suite
from bbo_suite.frames import summarise

FUNCTIONS = [f"ehrlich/{shape}#{k}" for shape in ("32x32-a", "64x32-a", "128x32-a") for k in (1, 2, 3, 4)]
STRATEGIES = ("annealing", "evolution", "mbo", "portfolio", "nevergrad:DiscreteLenglerOnePlusOne")
STUDY = HERE.parent / "ehrlich-10000"


def main(repeats: int = 5) -> None:
    """Do the runs that are missing and write the table."""
    settings = {"budget": 10_000, "repeats": repeats, "jobs": 2, "study": STUDY.name, "results": HERE.parent}
    bbo_suite.run(STRATEGIES, FUNCTIONS, quiet=False, **settings)
    runs = pd.DataFrame([summarise(end.parent) for end in STUDY.glob("*/end.json")])
    runs["optimal"] = runs["best"] < 1 + 1e-9
    means = runs.pivot_table(index="problem", columns="strategy", values="speedup")
    rows = []
    for name, part in runs.groupby("strategy"):
        row = {"strategy": name, "functions": part["problem"].nunique(), "runs": len(part)}
        row |= {"mean": means[name].mean(), "optimal": int(part["optimal"].sum())}
        rows.append(row | {"p": 1.0 if name == "mbo" else wilcoxon(means[name], means["mbo"]).pvalue})
    pd.DataFrame(rows).sort_values("mean").to_csv(HERE / "ehrlich.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
