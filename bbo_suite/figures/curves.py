"""Curves of the best speedup with bands, one panel per problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import baselines, captions, style
from .highlight import Highlight, legend
from .interactive import mark

POINTS = 200
"""Points of a curve, at most."""
_APART = 0.055
"""The part of an axis's height that a value at the end of a curve takes."""
_SEEN = 0.01
"""The part of the largest rise that is seen as one."""


def draw(
    data: pd.DataFrame,
    highlight: Highlight,
    x: str,
    axis: Callable[[Axes], None],
    speedups: dict[str, dict[str, float]],
    ratio: str,
) -> Figure:
    """Draw curves of the best speedup against the column `x`.

    Args:
      data: problem, strategy, runs, lower, median, upper and `x`.
      axis: formats the x axis.
      speedups: that each problem knows, by name.
      ratio: what they are called (see `captions.ratio`).
    """
    problems = list(dict.fromkeys(data["problem"]))
    figure, axes = style.panels(len(problems), 4.2, 3.3, 1.1 + 0.2 * len(highlight.looks) / 3)
    for ax, problem in zip(axes.flat, problems, strict=False):
        known = speedups.get(problem, {})
        _panel(ax, data[data["problem"] == problem], highlight, x, known)
        axis(ax)
        baselines.draw(ax, known)
        style.title(ax, problem)
    for ax in axes[:, 0]:
        ax.set_ylabel(f"best {ratio} over the default")
    legend(figure, highlight.legend)
    return figure


def _panel(ax: Axes, data: pd.DataFrame, highlight: Highlight, x: str, known: dict[str, float]) -> None:
    ax.axhline(1, color="0.35", lw=1, ls=(0, (1, 2)))
    for place, strategy in enumerate(highlight.order(set(data["strategy"]))):
        curve = data[data["strategy"] == strategy]
        for artist in _curve(ax, curve, highlight.look(strategy), x, place, named=strategy in highlight.looks):
            mark(artist, highlight.labels[strategy])
    ax.annotate("default", (1, 1), xycoords=("axes fraction", "data"), xytext=(-2, -3), textcoords="offset points",
                ha="right", va="top", fontsize=8.5, color="0.35",
                bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.8})  # fmt: skip
    least, most = max(data[x].min(), _start(data, x) / 2), data[x].max()
    edge = max(1.1, (most / least) ** 0.05)
    ax.set(ylim=_limits(data), xscale="log", xlim=(least / edge, most * edge))  # set even if no speedup is finite
    if ax.get_ylim()[1] > style.FAR:
        style.log_speedups(ax.yaxis, *_positive_range(data, known), 0.09, 0.09)
    _ends(ax, data, highlight)


def _start(data: pd.DataFrame, x: str) -> float:
    """Return where the first curve is seen to leave its first value; the least of all if none is."""
    values = data[["lower", "median", "upper"]].clip(lower=0)
    first = values.groupby(data["strategy"]).transform("first")
    rises = (values - first).abs().max(axis=1)
    moved = data.loc[rises > _SEEN * rises[np.isfinite(rises)].max(), x]
    return float(moved.min() if len(moved) else data[x].min())


def _ends(ax: Axes, data: pd.DataFrame, highlight: Highlight) -> None:
    """Write the last value of each highlighted curve at its end; equal ones are written once."""
    last = data[data["strategy"].isin(list(highlight.looks))].groupby("strategy", observed=True)["median"].last()
    texts: dict[str, list[str]] = {}
    for name, value in last[np.isfinite(last)].sort_values(kind="stable").items():
        texts.setdefault(style.ratio(value), []).append(str(name))
    shown = np.array([[1, max(last[names[0]], 1e-99)] for names in texts.values()]).reshape(-1, 2)
    places = (ax.transScale + ax.transLimits).transform(shown)[:, 1].clip(0, 1).tolist()
    for place, (text, names) in zip(style.spread(places, _APART), texts.items(), strict=True):
        colour = highlight.looks[names[0]].colour if len(names) == 1 else "0.25"
        ax.annotate(text, (1, place), xycoords="axes fraction", xytext=(2, 0), textcoords="offset points", va="center",
                    fontsize=7.5, color=colour, annotation_clip=False)  # fmt: skip


def _curve(ax: Axes, curve: pd.DataFrame, look: style.Look, x: str, place: int, named: bool) -> Iterator[Artist]:
    many = np.isfinite(curve["median"]).sum() > 5
    marks = (0.05 + 0.03 * (place % 6), 0.18) if many else 1  # shifted, so that markers do not coincide
    yield from ax.plot(curve[x], curve["median"], color=look.colour, linestyle=look.dash, lw=1.6 if named else 0.9,
            marker=look.marker, markersize=4, markevery=marks)  # fmt: skip
    if named and curve["runs"].iloc[0] > 1:
        for end in curve.loc[curve["ended"] > 0, [x, "median"]].to_numpy()[:1] if "ended" in curve else ():
            yield from ax.plot(*end, "x", color=look.colour, markersize=7, mew=1.8)
        yield ax.fill_between(curve[x], curve["lower"], curve["upper"], color=look.colour, alpha=0.15, lw=0)


def _limits(data: pd.DataFrame) -> tuple[float, float]:
    """Return the range of speedups to show: above the default, and the end of each curve."""
    highest = data[["median", "upper"]].to_numpy()
    top = highest[np.isfinite(highest)].max(initial=1.001)
    last = data.groupby("strategy")[["median", "lower"]].last().to_numpy()
    bottom = min(1 - 0.12 * (top - 1), last.min())
    return bottom - 0.03 * (top - bottom), top + 0.06 * (top - bottom)


def _positive_range(data: pd.DataFrame, known: dict[str, float]) -> tuple[float, float]:
    """Return the least and the most speedup for a log scale, on which there is room for all that is known, too."""
    highest = data[["median", "upper"]].to_numpy()
    last = data.groupby("strategy")[["median", "lower"]].last().to_numpy()
    return last[last > 0].min(initial=1.0), max([*known.values(), highest[np.isfinite(highest)].max()])


def caption(data: pd.DataFrame, highlight: Highlight, ratio: str, x_text: str) -> str:
    """Return the caption of a figure of curves."""
    counts = data["runs"]
    band = "median and interquartile band" if counts.max() > 1 else "single runs, without a band"
    text = f"Best {ratio} so far over the compiler's default, higher is better; {band}"
    text = f"{text}, {captions.number_of_runs(counts)} runs per strategy. At the right: the last medians."
    return f"{text}{highlight.caption} {ratio.capitalize()}: default's cost / candidate's cost. {x_text}"
