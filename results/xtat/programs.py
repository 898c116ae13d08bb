"""Writes end_to_end.png and layers.png beside this file.

It prints what tuning all four passes gains on every program that has a run, and what it costs to fuse within layers.

    python results/xtat/programs.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from bbo_suite.figures.style import save_with_few_colours
from bbo_suite.scores import over_programs
from bbo_suite.stats import signed_rank_p
from bbo_suite.store.run_table import read_runs

HERE = Path(__file__).parent
CHOSE = ("ssd", "resnet_v2", "translate", "convdraw", "moe")
"""Models on which annealing's settings were chosen."""
MUCH, BETTER = 1.05, "the better"
SHOWN = (
    ("joint", "o", "#0072B2", "XTAT's schedule, 5,000 evaluations"),
    ("graybox", "D", "#D55E00", "graybox (sees costs of parts), 200 evaluations"),
)


def summaries(table: pd.DataFrame) -> pd.DataFrame:
    """Return the means of each strategy: of all programs, and with and without the models that chose settings."""
    chose = table.index.str.contains("|".join(f"/{name}-" for name in CHOSE))
    parts = {"all": table, "chose settings": table[chose], "chose none": table[~chose]}
    rows = {(n, s): over_programs(part[s].dropna()) for n, part in parts.items() for s in part}
    return pd.DataFrame(rows).T


def draw(table: pd.DataFrame) -> None:
    """Draw the programs on which one of the two gains 5 % or more, as the source's figure does."""
    shown = table[table[BETTER] >= MUCH].sort_values(BETTER)
    figure, ax = plt.subplots(figsize=(8, 0.17 * len(shown) + 1.2), layout="constrained")
    names = shown.index.str.removeprefix("joint/")
    ax.barh(names, 100 * (shown[BETTER] - 1), color="#CFDDE8", label="the better of both")
    for name, marker, color, label in SHOWN:
        ax.plot(100 * (shown[name] - 1), names, marker, color=color, markersize=4, label=label)
    ax.axvline(0, color="0.4", lw=0.8)
    ax.tick_params(axis="y", labelsize=7)
    ax.margins(y=0.01)
    ax.set_xlabel("gain over the compiler's default, %")
    ax.set_title(f"{len(shown)} of {len(table)} programs gain 5 % or more", fontsize=9)
    ax.legend(loc="lower right", fontsize=8, frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    save_with_few_colours(figure, HERE / "end_to_end.png", 32, dpi=80)


def losses(runs: pd.DataFrame) -> pd.DataFrame:
    """Return by program how much more time fusion within layers takes, in %: by default, and the best found."""
    split = runs["problem"].str.split("/", n=1, expand=True)
    costs = runs.assign(family=split[0], program=split[1]).set_index(["program", "family"])[["default", "best"]]
    within, free = (costs.xs(family, level="family") for family in ("layers", "fusion"))
    return 100 * (within / free - 1).sort_values("best", ascending=False)


def draw_losses(loss: pd.DataFrame) -> None:
    """Draw the loss of each program, the largest first."""
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    places, mean = range(len(loss)), loss["best"].mean()
    ax.bar(places, loss["best"], width=1, color="#0072B2", label="best of a search")
    ax.plot(places, loss["default"], ".", color="#D55E00", markersize=5, label="compiler's default")
    ax.axhline(mean, color="0.4", lw=1, linestyle="--")
    ax.set_xlabel(f"{len(loss)} programs; {loss.index[0]} loses most")
    ax.set_ylabel("more run time with the restriction, %")
    ax.set_title(f"Fusions only within a layer: {mean:.0f} % more time in the mean (dashed)", loc="left", fontsize=9)
    ax.legend(fontsize=8, frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    save_with_few_colours(figure, HERE / "layers.png", 32, dpi=80)


if __name__ == "__main__":
    loss = losses(read_runs(HERE / "layers-runs.csv.gz"))
    draw_losses(loss)
    print(loss.describe().round(1).to_string())
    print(loss.groupby(loss.index.str.contains("train"))["best"].agg(["size", "mean"]).round(1).to_string())
    print(loss.groupby(loss.index.str.split("-").str[0])["best"].mean().round(0).to_string())
    runs = read_runs(HERE / "end_to_end-runs.csv.gz")
    table = runs.pivot_table(index="problem", columns="strategy", values="speedup")
    table = table.dropna()
    table[BETTER] = table.max(axis=1)
    print(summaries(table).round(4).to_string())
    first, second = table["graybox"], table["joint"]
    print("graybox ahead", (first > second).sum(), "behind", (first < second).sum(), "p", signed_rank_p(first, second))
    print(runs.groupby("strategy")[["seconds", "evaluation_seconds"]].describe().T.round(1).to_string())
    draw(table)
