"""Bars of the mean speedup after the whole budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from ..core.level import LEVEL
from ..core.quantities import with_noun
from ..scores import final_values
from . import baselines, captions, style
from .highlight import Highlight, highlighted
from .interactive import mark

MOST, BEST = 20, 12
POINTS = 50
"""Runs that are drawn as points, at most."""


def speedup_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the bars.

    Columns: problem, strategy, level, runs, budget, evaluations (of the shortest run), mean, low, high (95 % interval
    of the mean), least, most (of the runs).
    """
    values = final_values(frame)
    runs = values.frame.groupby(["problem", "strategy"])
    counts: Any = runs.agg(budget=("budget", "first"), evaluations=("evaluation", "min")).to_dict("index")
    bars = []
    for mean in values.means:
        named = {"problem": mean.problem, "strategy": mean.strategy, LEVEL: values.levels[mean.strategy].word}
        spent = counts[mean.problem, mean.strategy]
        least = float(values.speedups[mean.problem, mean.strategy].min())
        bounds = {"mean": mean.mean, "low": mean.low, "high": mean.high, "least": least, "most": mean.best}
        bars.append({**named, "runs": mean.runs, **spent, **bounds})
    return pd.DataFrame(bars)


@mpl.rc_context(style.SETTINGS)
def draw(frame: pd.DataFrame, problems: Sequence[str] | None = None) -> tuple[Figure, pd.DataFrame]:
    """Draw the mean speedup over the repeats with its 95 % interval and the runs, for each problem and strategy.

    Bars start at 1, the default, so that their length is the gain. Returns the figure and its data (`speedup_data`).
    """
    strategies = _shown(frame)
    shown = style.chosen(frame, problems)
    data = speedup_data(shown)
    data = data[data["strategy"].isin(strategies)].reset_index(drop=True)
    problems = list(dict.fromkeys(data["problem"]))
    highlight = highlighted(frame)
    names, runs = [highlight.labels[name] for name in strategies], final_values(shown).speedups
    ratio = captions.ratio(shown)
    figure, axes = style.panels(len(problems), 4.0, 0.29 * len(strategies) + 1.0, 0.6, sharey=True)
    for ax, problem in zip(axes.flat, problems, strict=False):
        own, lines = data[data["problem"] == problem], baselines.all_known(frame).get(problem, {})
        least, most = _panel(ax, own, strategies, highlight)
        _points(ax, [runs[problem, name] for name in own["strategy"]], [strategies.index(n) for n in own["strategy"]])
        ax.set_xlabel(f"mean {ratio}")
        _limit(ax, least, most, [*own["mean"], *lines.values()])
        baselines.draw_across_bars(ax, lines)
        style.title(ax, problem)
    axes.flat[0].set_yticks(range(len(names)), names)
    axes.flat[0].set_ylim(len(names) - 0.4, -0.6)  # the first at the top
    known = len(highlight.labels)
    few = "" if known == len(names) else f" Shown: the best {BEST} of {known} strategies by mean rank."
    gaps = " No number: no run." if len(data) < len(strategies) * len(problems) else ""
    notes = baselines.caption(shown) + captions.short_runs(shown) + captions.noisy_costs(shown)
    notes += captions.different_levels(highlight.levels.values())
    style.caption(figure, _caption(data, ratio) + gaps + few + notes)
    return figure, data


def _shown(frame: pd.DataFrame) -> list[str]:
    """Return the strategies that have a bar, by mean rank: all if there are at most 20, else the best 12."""
    order = final_values(frame).by_rank
    return order if len(order) <= MOST else order[:BEST]


def _panel(ax: Axes, data: pd.DataFrame, strategies: list[str], highlight: Highlight) -> tuple[float, float]:
    """Draw the bars of a problem and return the range that they and their intervals take."""
    y = np.array([strategies.index(name) for name in data["strategy"]])
    mean, low, high = (data[column].to_numpy() for column in ("mean", "low", "high"))
    drawn = np.where(np.isfinite(mean), mean, 1)
    bars = ax.barh(y, drawn - 1, 0.72, left=1, color=[highlight.look(name).colour for name in data["strategy"]])
    for bar, (_, shown) in zip(bars, data.iterrows(), strict=True):
        bounds = f" (95 %: {shown['low']:.4f} to {shown['high']:.4f})" if np.isfinite(shown["low"]) else ""
        mark(bar, highlight.labels[shown["strategy"]], f"{style.ratio(shown['mean'])}{bounds}")
    known = np.isfinite(low)
    reach = np.vstack([mean - low, high - mean])[:, known]
    whiskers = ax.errorbar(mean[known], y[known], xerr=reach, fmt="none", ecolor="0.15", capsize=2.5, lw=1.1)
    for line in whiskers.get_children():
        line.set_path_effects([withStroke(linewidth=2.6, foreground="white")])  # visible on dark bars
    ends = np.fmax(1, np.where(known, np.fmax(high, data["most"]), drawn))
    for place, value, end in zip(y, mean, ends, strict=True):
        ax.annotate(
            style.ratio(value), (end, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
        )
    ax.axvline(1, color="0.35", lw=1)
    ax.grid(axis="y", visible=False)
    return min(1, np.where(known, np.fmin(low, data["least"]), drawn).min()), ends.max()


def _points(ax: Axes, runs: Sequence[NDArray[np.float64]], places: Sequence[int]) -> None:
    """Draw each run's result; a single run is its bar."""
    for values, place in zip(runs, places, strict=True):
        if 1 < len(values) <= POINTS:
            ax.plot(
                values, np.full(len(values), place), "o", markersize=3.2, mfc="white", mec="0.15", mew=0.8, zorder=3
            )


def _limit(ax: Axes, least: float, most: float, shown: list[float]) -> None:
    """Give a range room for the numbers; far above the default, show all positive speedups on a log scale."""
    if most > style.FAR:
        positive = [value for value in shown if 0 < value < np.inf]
        style.log_speedups(ax.xaxis, min([1, *positive]), max([most, *positive]), 0.04, 0.2)
    else:
        width = max(most - least, 1e-3)
        ax.set_xlim(least - 0.04 * width, most + 0.27 * width)
        ax.locator_params(axis="x", nbins=3)


def _caption(data: pd.DataFrame, ratio: str) -> str:
    counts, budget, fewest = data["runs"], data["budget"].max(), data["evaluations"].min()
    bars = (
        "with 95 % intervals (bootstrap over runs, the points)"
        if counts.max() > 1
        else "of single runs, without intervals"
    )
    spent = f"{with_noun(budget, 'evaluation')} each"
    runs = f"{captions.number_of_runs(counts)} runs"
    if fewest < budget:
        spent = f"at most {budget:,} evaluations each (fewest so far: {fewest:,})"
    text = f"Mean {ratio} over the compiler's default {bars}, higher is better; {runs} of {spent}."
    order = " Sorted by mean rank." if data["problem"].nunique() > 1 else ""
    return f"{text} {ratio.capitalize()}: default's cost / best candidate's cost. Bars start at 1, the default.{order}"
