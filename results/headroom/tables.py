"""Tables and the figure of the runs that are there; `study.py tables` calls it."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bbo_suite.core.knowledge import Knowledge, flags
from bbo_suite.registry import Registry
from bbo_suite.stats import holm, signed_rank_p, smallest_signed_rank_p

BUDGETS = (50, 200, 1_000, 10_000)
PEER = "nevergrad:DiscreteLenglerOnePlusOne"
PAIRS = (
    *((name, n, "annealing", n) for name in ("evolution", "mbo", "local") for n in BUDGETS),
    *((PEER, n, "annealing", n) for n in (200, 1_000)),
    *(("graybox", n, "local", n) for n in (50, 200)),
    *(("graybox", 50, "annealing", 1_000), ("graybox", 200, "annealing", 10_000)),
)
"""What was looked at: a strategy with a budget against another one with its budget."""
DIFFERENCES = (0.05, 0.1, 0.2)
COLOURS = {"annealing": "#0072b2", "evolution": "#56b4e9", "mbo": "#009e73", "local": "#d55e00", "graybox": "#000000"}
COLOURS |= {PEER: "#cc79a7", "random": "#999999"}
DASHES = {Knowledge.COSTS: "-", Knowledge.STRUCTURE: "--", Knowledge.PARTS: ":"}


def shares(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean gain of each task, strategy and budget, and its share of the best gain that any run reached."""
    drawn = runs[runs["strategy"] == "random"]
    prefixes = [drawn.assign(budget=n, gain=drawn[f"g{n}"]) for n in BUDGETS[:-1]]  # its budget changes nothing
    table = pd.concat([runs, *prefixes])
    columns = {"seeds": ("seed", "nunique"), "gain": ("gain", "mean"), "own": ("own", "median")}
    marks = {name: (name, "median") for name in ("to90", "to99")}
    means = table.groupby(["task", "strategy", "budget"]).agg(**columns, **marks)
    return means.assign(share=means["gain"] / table.groupby("task")["gain"].max()).reset_index()


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each of `PAIRS`: tasks, mean shares, tasks ahead, p (Wilcoxon, paired by task) and Holm's p.

    Last are the tasks that a true difference of each of `DIFFERENCES` needs (80 % power at 5 %, normal approximation).
    """
    wide, rows = table.pivot_table(index="task", columns=["strategy", "budget"], values="share"), []
    for name, n, other, m in PAIRS:
        if (name, n) not in wide or (other, m) not in wide:
            continue
        both = wide[[(name, n), (other, m)]].dropna().to_numpy()
        difference = both[:, 0] - both[:, 1]
        row = {"strategy": name, "budget": n, "against": other, "its_budget": m, "tasks": len(both)}
        row |= {"share": both[:, 0].mean(), "its_share": both[:, 1].mean(), "ahead": int((difference > 1e-9).sum())}
        row |= {"p": signed_rank_p(*both.T), "least_p": smallest_signed_rank_p(len(both))}
        needed = {f"tasks_for_{x}": np.ceil((2.8 * difference.std(ddof=1) / x) ** 2 / 0.955) for x in DIFFERENCES}
        rows.append(row | needed)
    found = pd.DataFrame(rows)
    found.insert(9, "holm", holm(found["p"].to_numpy()))
    return found


def draw(table: pd.DataFrame, file: Path) -> None:
    """Draw the share of the best known gain against the budget: all tasks, and those on which `graybox` ran."""
    wide = table[table["strategy"] != "joint"].pivot_table(index="task", columns=["strategy", "budget"], values="share")
    heard = wide[wide["graybox"].notna().all(axis=1)]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    for ax, part in zip(axes, (wide.drop(columns="graybox", level=0), heard), strict=True):
        whole = part.loc[:, part.notna().all()]  # a budget that lacks a task is left out
        for name in whole.columns.get_level_values(0).unique():
            level, own = Knowledge.of(flags(Registry().strategy(name))), whole[name].mean()
            look = {"color": COLOURS[name], "ls": DASHES[level], "marker": "o", "ms": 4, "lw": 2}
            ax.plot(own.index, own, label=f"{name}: {level.sees}", **look)
        ax.set(xscale="log", ylim=(-0.02, 1.02), xlabel="evaluations (the run's budget)")
        ax.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set(ylabel="share of the best known gain", title=f"Mean over all {len(wide)} tasks; higher is better")
    axes[1].set_title(f"Mean over the {len(heard)} tasks on which graybox ran")
    handles = {name: line for ax in axes for line, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(file, dpi=90)


def write(here: Path) -> None:
    """Write gains.csv, verdicts.csv and gain.png."""
    table = shares(pd.read_csv(here / "runs.csv"))
    table.to_csv(here / "gains.csv", index=False, float_format="%.4g")
    found = verdicts(table)
    found.to_csv(here / "verdicts.csv", index=False, float_format="%.3g")
    print(found.to_string(index=False))
    draw(table, here / "gain.png")
