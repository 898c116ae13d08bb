"""Who is best when the whole budget is spent?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..stats import mean_interval
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def speedup_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the bars: problem, strategy, uses_structure, runs, budget, mean, low, high (95 % interval of the mean)."""
    keys = ["problem", "strategy", "seed"]
    final = frame.groupby(keys, observed=True, sort=True)[["speedup", "uses_structure", "budget"]].last().reset_index()
    bars = []
    for (problem, strategy), group in final.groupby(["problem", "strategy"], observed=True, sort=True):
        mean, low, high = mean_interval(group["speedup"])
        fixed = {"problem": problem, "strategy": strategy, "uses_structure": bool(group["uses_structure"].iloc[0])}
        numbers = {"runs": len(group), "budget": int(group["budget"].iloc[0]), "mean": mean, "low": low, "high": high}
        bars.append({**fixed, **numbers})
    return pd.DataFrame(bars)


def speedup_bars(frame: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw the mean speedup over the repeats with its 95 % interval, for each problem and strategy.

    Bars start at 1, the default, so that their length is the gain. Returns the figure and the data (`speedup_data`).
    """
    import matplotlib.pyplot as plt

    data = speedup_data(frame)
    problems, strategies = list(dict.fromkeys(data["problem"])), sorted(set(data["strategy"]))
    width = max(6.4, 0.62 * len(data) + 2)
    figure, ax = plt.subplots(figsize=(width, 4.4), layout="constrained")
    plt.close(figure)
    _draw(ax, data, problems, strategies)
    ax.axhline(1, color="0.35", lw=1)
    ax.annotate("default", (1, 1), xycoords=("axes fraction", "data"), xytext=(-2, -3), textcoords="offset points",
                ha="right", va="top", fontsize=8.5, color="0.35")  # fmt: skip
    ax.set_xticks(range(len(problems)), problems, rotation=20 if len(problems) > 5 else 0)
    ax.set_ylabel("mean speedup over the default")
    ax.grid(axis="x", visible=False)
    ax.margins(y=0.15)
    figure.legend(loc="outside upper center", ncols=min(4, len(strategies)), fontsize=8.5)
    style.caption(figure, _caption(data))
    return figure, data


def _draw(ax: Axes, data: pd.DataFrame, problems: list[str], strategies: list[str]) -> None:
    looks, step = style.looks(strategies), 0.82 / len(strategies)
    for i, strategy in enumerate(strategies):
        own, look = data[data["strategy"] == strategy], looks[strategy]
        x = np.array([problems.index(p) for p in own["problem"]]) + (i - (len(strategies) - 1) / 2) * step
        mean, low, high = (own[column].to_numpy() for column in ("mean", "low", "high"))
        legend = style.label(strategy, bool(own["uses_structure"].iloc[0]))
        ax.bar(x, mean - 1, step * 0.92, bottom=1, color=look.colour, hatch=look.hatch, edgecolor="white", label=legend)
        known = ~np.isnan(low)
        reach = np.vstack([mean - low, high - mean])[:, known]
        ax.errorbar(x[known], mean[known], reach, fmt="none", ecolor="0.15", capsize=3, lw=1.2)
        for place, height, top in zip(x, mean, np.fmax(mean, high), strict=True):
            ax.annotate(f"{height:.3f}", (place, max(top, 1)), xytext=(0, 3), textcoords="offset points",
                        ha="center", va="bottom", fontsize=8)  # fmt: skip


def _caption(data: pd.DataFrame) -> str:
    counts, budgets = sorted(set(data["runs"])), sorted(set(data["budget"]))
    runs = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    bars = "with 95 % intervals (Student's t)" if counts[-1] > 1 else "of single runs, so without intervals"
    text = (
        f"Mean speedup over the compiler's default {bars}, higher is better; {runs} runs of {budgets[0]:,} evaluations"
    )
    return f"{text} each. Unit: default's cost / best candidate's cost. Bars start at the default."
