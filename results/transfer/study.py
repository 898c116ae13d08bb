"""Writes wins.csv and transfer.png beside this file: `python results/transfer/study.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from plan import COSTS_ONLY, TASKS

from bbo_suite.store.run_table import read_runs

HERE = Path(__file__).parent
OURS, BEST = "rl, trained", "best of costs only"
DASHES = {"costs": ":", "structure": "-", "parts": "--"}


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean gain of each strategy on each task, and the best of those that know costs only."""
    table = runs.pivot_table(index="problem", columns="strategy", values="gain")
    return table.assign(**{BEST: table[[name for name in COSTS_ONLY if name in table]].max(axis=1)})


def wins(runs: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield by kind of tasks, budget and strategy: gains, and the tasks on which `rl, trained` gains more or less.

    `share` is the mean of a task's gain over the largest that any run found there.
    """
    most = runs.groupby("problem")["gain"].max()
    groups = runs["problem"].map({task: group for group, tasks in TASKS.items() for task in tasks})
    for (group, budget), own in runs.groupby([groups, "budget"]):
        gains, times = means(own), 1000 * (own["seconds"] / own["evaluations"]).groupby(own["strategy"]).median()
        for name in gains:
            ours = gains[OURS] - gains[name]
            row = {"tasks_of": group, "budget": budget, "strategy": name, "tasks": len(gains)}
            row |= {"share": (gains[name] / most[gains.index]).mean(), "gain": gains[name].mean()}
            row |= {"trained_is_ahead": (ours > 0).sum(), "behind": (ours < 0).sum()}
            yield row | {"own_ms": times.get(name, np.nan)}


def draw(runs: pd.DataFrame, table: pd.DataFrame) -> None:
    """Draw mean shares on fusion over evaluations, and each task's gain at 50 beside the best of costs only."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
    fusion = runs[runs["problem"].isin(TASKS["fusion"])]
    for name, level in fusion.groupby("strategy")["level"].first().items():
        own = table[(table["tasks_of"] == "fusion") & (table["strategy"] == name)]
        left.plot(own["budget"], own["share"], DASHES[level], marker="o", lw=3 if name == OURS else 1.5, label=name)
    left.set(xscale="log", xlabel="evaluations", ylabel="mean share of the largest known gain (more is better)")
    left.set_xticks([20, 50, 200], ["20", "50", "200"])
    left.minorticks_off()
    left.set_title("20 unseen programs, fusion\n(dotted: costs only, dashed: parts)", fontsize=10)
    left.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    gains = means(fusion[fusion["budget"] == 50]).sort_values(OURS)
    for name, marker in ((OURS, "o"), ("graybox", "|"), ("local", "x"), (BEST, "^")):
        right.plot(gains[name], range(len(gains)), marker, label=name)
    right.set_yticks(range(len(gains)), [task.partition("/")[2] for task in gains.index], fontsize=8)
    right.set(xscale="symlog", xlabel="gain after 50 evaluations, % (linear below 1)", xlim=(-0.05, None))
    right.legend(fontsize=8)
    figure.savefig(HERE / "transfer.png", dpi=80)


if __name__ == "__main__":
    all_runs = read_runs(HERE / "runs.csv.gz")
    all_runs["gain"] = 100 * (all_runs["speedup"].clip(lower=1) - 1)
    found = pd.DataFrame(wins(all_runs))
    found.to_csv(HERE / "wins.csv", index=False, float_format="%.4g")
    print(found[found["strategy"] == BEST].to_string(index=False))
    draw(all_runs, found)
