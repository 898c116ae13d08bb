"""The time that a strategy itself needs per candidate."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..core.level import LEVEL
from ..scores import RUN, final_values
from . import captions, style
from .highlight import Highlight, highlighted, labels, legend
from .interactive import mark

_SECONDS = ["strategy_seconds", "evaluation_seconds"]
_LEAST = 1e-9
"""Seconds, below the resolution of a clock: the least that a log scale shows."""


def overhead_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds per candidate: problem, parameters, strategy, level, runs,
    strategy_seconds, evaluation_seconds (medians over the runs).
    """
    levels = final_values(frame).levels
    parameters = frame.groupby("problem", observed=True)["parameters"].first()
    means = frame.groupby(RUN, observed=True)[_SECONDS].mean()
    found = means.groupby(["problem", "strategy"], observed=True)
    data = found.median().assign(runs=found.size()).reset_index().astype({"problem": "str", "strategy": "str"})
    data["parameters"] = data["problem"].map(parameters.astype(int)).astype(int)
    data[LEVEL] = [levels[name].word for name in data["strategy"]]
    columns = ["problem", "parameters", "strategy", LEVEL, "runs", *_SECONDS]
    return data[columns].sort_values(["problem", "parameters", "strategy"], ignore_index=True)


@mpl.rc_context(style.SETTINGS)
def draw(frame: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw each strategy's seconds per candidate; against the number of parameters, if problems differ in it.

    Returns the figure and its data (see `overhead_data`).
    """
    data = overhead_data(frame)
    figure = _by_size(data, highlighted(frame)) if data["parameters"].nunique() > 1 else _dots(data, labels(frame))
    runs = captions.number_of_runs(data["runs"])
    named = highlighted(frame).caption if data["parameters"].nunique() > 1 else ""
    style.caption(
        figure,
        f"The strategy's own time per candidate, on a log scale, lower is better; median of {runs} runs, as measured "
        f"in each.{named} Thick grey mark: the time of an evaluation, which is not included."
        f"{captions.short_runs(frame)}",
    )
    return figure, data


def _by_size(data: pd.DataFrame, highlight: Highlight) -> Figure:
    figure, axes = style.panels(1, 6.4, 3.8, 0.6 + 0.2 * len(highlight.legend) / 3)
    ax = axes.flat[0]
    data = data.assign(parameters=_sizes(data["parameters"].to_numpy()))
    costs = data.groupby("parameters")["evaluation_seconds"].median()
    ax.plot(costs.index, np.maximum(_LEAST, costs), "_", color="0.6", markersize=14, mew=4, alpha=0.5)
    for name in highlight.order(set(data["strategy"])):
        part = data[data["strategy"] == name].groupby("parameters")["strategy_seconds"].median()
        look = highlight.look(name)
        (dots,) = ax.plot(part.index, np.maximum(_LEAST, part), look.marker or ".", color=look.colour, markersize=4.5)
        mark(dots, highlight.labels[name], "median time per candidate, by the number of parameters")
    ax.set(yscale="log", ylabel="strategy's time per candidate")
    style.seconds(ax.yaxis)
    style.evaluations(ax)
    ax.set_xlabel("parameters")
    legend(figure, highlight.legend)
    return figure


def _sizes(parameters: NDArray) -> NDArray:
    """Return numbers of parameters, rounded to powers of two if there are more than 16 of them."""
    few = len(np.unique(parameters)) <= 16
    return parameters if few else 2.0 ** np.round(np.log2(np.maximum(1, parameters)))


def _dots(data: pd.DataFrame, names: dict[str, str]) -> Figure:
    part = data.groupby("strategy")[["strategy_seconds", "evaluation_seconds"]].median()
    part = part.sort_values("strategy_seconds", kind="stable")
    figure, axes = style.panels(1, 7.0, 0.27 * len(part) + 0.7, 0.6)
    ax: Axes = axes.flat[0]
    x, y = np.maximum(_LEAST, part["strategy_seconds"]), np.arange(len(part))
    ax.axvline(max(_LEAST, part["evaluation_seconds"].median()), color="0.6", lw=4, alpha=0.5)
    ax.plot(x, y, "o", color=style.looks(["one"])["one"].colour)
    for place, value in zip(y, x, strict=True):
        ax.annotate(style.duration(value), (value, place), xytext=(7, 0), textcoords="offset points", va="center",
                    fontsize=8)  # fmt: skip
    ax.set_yticks(y, [names[name] for name in part.index])
    ax.set(ylim=(len(part) - 0.4, -0.6), xscale="log", xlabel="strategy's time per candidate")
    style.seconds(ax.xaxis)
    ax.margins(x=0.15)
    return figure
