"""Writes claims.csv and claims.png beside this file, and prints them: `python results/xtat/study.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bbo_suite import Study
from bbo_suite.figures.style import save_with_few_colours
from bbo_suite.stats import mean_interval

HERE = Path(__file__).parent
CLAIMS = {
    "layout and fusion: joint against sequential": ("graph-joint", "graph-sequential"),
    "tile and flags: joint against sequential (exhaustive)": ("kernel-joint", "kernel-sequential"),
    "tile and flags: joint against sequential (annealing)": ("kernel-joint", "kernel-sequential-annealed"),
    "all passes: with the store against without": ("all-with-store", "all-without-store"),
}


def claims(runs: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield the ratio of speedups of each claim, per model and over all: mean, and 95 % interval.

    The interval is over the runs, which share their seeds, for a model, and over models for all of them.
    """
    logs = np.log(runs.pivot_table(index=["problem", "seed"], columns="strategy", values="speedup"))
    for claim, (one, other) in CLAIMS.items():
        ratio = logs[one] - logs[other]
        groups = {**dict(iter(ratio.groupby("problem"))), "all models": ratio.groupby("problem").mean()}
        for name, values in groups.items():
            mean, low, high = np.exp(mean_interval(values.to_numpy()))
            model = str(name).removeprefix("joint/")
            yield {"claim": claim, "model": model, "ratio": mean, "low": low, "high": high, "n": len(values)}


def draw(table: pd.DataFrame) -> None:
    """Draw one panel a claim: the ratio of speedups for each model and over all; right of 1 the first is better."""
    figure, axes = plt.subplots(1, len(CLAIMS), figsize=(16, 5), sharey=True, layout="constrained")
    for ax, (claim, part) in zip(axes, table.groupby("claim", sort=False), strict=True):
        places = np.arange(len(part))[::-1]
        for place, row in zip(places, part.to_dict("records"), strict=True):
            errors = [[row["ratio"] - row["low"]], [row["high"] - row["ratio"]]]
            ax.errorbar(row["ratio"], place, xerr=errors, fmt="o", color="C0" if place else "C1", capsize=3)
        ax.axvline(1, color="0.4", lw=0.8)
        ax.set_yticks(places, part["model"])
        ax.set_title(claim, fontsize=9)
        ax.set_xlabel("ratio of speedups (right: the first is better)", fontsize=8)
        ax.grid(axis="x", color="0.9")
    figure.suptitle("Mean and 95 % interval; 10 runs a model and schedule, equal budgets", fontsize=10)
    save_with_few_colours(figure, HERE / "claims.png", 32, dpi=80)


if __name__ == "__main__":
    made = Study("xtat", HERE.parent).runs()
    table = pd.DataFrame(claims(made))
    table.to_csv(HERE / "claims.csv", index=False, float_format="%.6g")
    print(table[table["model"] == "all models"].to_string(index=False))
    speedups = made.groupby(["strategy", "problem"])["speedup"].mean()
    print(np.exp(np.log(speedups).groupby("strategy").mean()).round(3).to_string())
    draw(table)
