"""Writes gain.png and programs.png beside this file, and prints the tables that README.md has.

python results/inlining/study.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bbo_suite import Level
from bbo_suite.figures.style import label, looks, looks_by_knowledge, plain_numbers, save_with_few_colours
from bbo_suite.scores import corrected_p
from bbo_suite.stats import signed_rank_p
from bbo_suite.store.run_table import read_runs

HERE, BUDGET = Path(__file__).parent, 200
AFTER = (20, 50, 100, 200, 1000)
OURS, LONG = "graybox", "annealing, 1,000"


def gains(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the gain in % of each run after some compilations, nan beyond its budget."""
    costs = {n: runs["best"].where(runs["budget"] == n, runs.get(f"best@{n}")) for n in AFTER}
    found = {n: 100 * (runs["default"] / cost - 1) for n, cost in costs.items()}
    return pd.DataFrame({"problem": runs["problem"], "strategy": runs["strategy"], **found})


def geometric(percent: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric mean gain in % over rows."""
    return 100 * (np.exp(np.log1p(percent / 100).mean()) - 1)


def tests(ends: pd.DataFrame) -> pd.DataFrame:
    """Return how `graybox` compares with each other strategy: Wilcoxon over modules of means of runs, with Holm's p."""
    rows = []
    for name in ends.columns.drop(OURS):
        ours, theirs = ends[OURS], ends[name]
        ahead, behind = (int((sign * (ours - theirs) > 1e-9).sum()) for sign in (1, -1))
        ratio = geometric(ours) / geometric(theirs)
        rows.append((name, ahead, behind, ratio, signed_rank_p(ours, theirs)))
    table = pd.DataFrame(rows, columns=["against", "ahead", "behind", "times the gain", "p"])
    return table.assign(holm=corrected_p(table["p"].to_numpy()))


def draw_gain(means: pd.DataFrame, levels: dict[str, Level]) -> None:
    """Draw the gain against compilations, one line a strategy, dashed as what it knows."""
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, look in looks_by_knowledge(levels).items():
        shown = means.loc[name].dropna()
        style = {"color": look.colour, "marker": look.marker, "linestyle": look.dash}
        ax.plot(shown.index, shown, **style, label=label(name, levels[name]))
    ax.set_xscale("log")
    ax.set_xticks(AFTER)
    plain_numbers(ax.xaxis)
    ax.set_xlabel("compilations")
    ax.set_ylabel("gain over -Oz, % (geometric mean)")
    ax.legend(fontsize=8, frameon=False)
    save_with_few_colours(figure, HERE / "gain.png", 64, dpi=80)


def draw_programs(ends: pd.DataFrame) -> None:
    """Draw what is saved of each module: the best mean as a bar, and each strategy as a mark."""
    ends = ends[ends.max(axis=1) > 0].sort_values(OURS)
    figure, ax = plt.subplots(figsize=(7, 0.26 * len(ends) + 1.2), layout="constrained")
    ax.barh(ends.index, ends.max(axis=1), color="#CFDDE8", label="the best of them")
    look = looks(list(ends.columns))
    for name in ends.columns:
        ax.plot(ends[name], ends.index, look[name].marker, color=look[name].colour, markersize=5, label=name)
    ax.set_xlabel("gain over -Oz, %")
    ax.legend(fontsize=8, frameon=False, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)
    save_with_few_colours(figure, HERE / "programs.png", 64, dpi=80)


if __name__ == "__main__":
    runs = read_runs(HERE / "runs.csv.gz")
    long = (runs["strategy"] == "annealing") & (runs["budget"] > BUDGET)
    runs["strategy"] = runs["strategy"].where(~long, LONG)
    runs["problem"] = runs["problem"].str.replace(r"inlining[:/](lua/)?", r"\1", regex=True).str.removesuffix(".c")
    found = gains(runs)
    by_module = found.groupby(["strategy", "problem"]).mean()
    means = by_module.groupby("strategy").apply(geometric).dropna(axis=1, how="all")
    ends = pd.DataFrame({name: by_module.loc[name].dropna(axis=1, how="all").iloc[:, -1] for name in means.index})
    print(runs.groupby("strategy")["seed"].nunique().to_string(), means.round(2).to_string(), sep="\n\n")
    print(ends.round(2).sort_values(OURS, ascending=False).to_string(), tests(ends).round(4).to_string(), sep="\n\n")
    draw_gain(means, {name: Level.named(word) for name, word in runs.groupby("strategy")["level"].first().items()})
    draw_programs(ends)
