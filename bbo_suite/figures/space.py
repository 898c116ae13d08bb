"""What a space looks like: which costs are common, which parameters matter, and how the first two work together."""

from __future__ import annotations

import time
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.random import Generator
from numpy.typing import NDArray

from ..core.enumeration import Enumeration
from ..core.evaluation import evaluate
from ..core.problem import Problem
from ..core.quantities import cost
from ..core.space import count_text
from ..errors import UserError
from . import style

MOST, SECONDS = 5_000, 20.0
"""Candidates that are evaluated at most, and how long."""
_AT_ONCE = 100
PARAMETERS, _SHOWN, _TICKS = 100, 12, 16
"""Parameters that a space may have, those that are shown, and values of one that are named."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Candidates of a problem that were evaluated.

    Attributes:
      configs: `(n, d)` those that succeeded.
      costs: `(n,)` above zero.
      failed: how many more failed, or are forbidden.
      whole: they are the whole space.
    """

    configs: NDArray
    costs: NDArray[np.float64]
    failed: int
    whole: bool


def sample(problem: Problem, rng: Generator, most: int = MOST, seconds: float = SECONDS) -> Sample:
    """Evaluate the space in a random order, up to a number of candidates and for a time.

    Raises:
      UserError: there are too many parameters for a picture, or fewer than two candidates succeeded.
    """
    if len(problem.space) > PARAMETERS:
        what = (
            f"{problem.id} has {len(problem.space):,} parameters, and a picture of a space shows {PARAMETERS} at most"
        )
        raise UserError(f"{what}; `plot STUDY` draws what runs found")
    order, tried, found, until = Enumeration(problem.space, rng), 0, [], time.monotonic() + seconds
    while tried < min(order.length, most) and (not tried or time.monotonic() < until):
        rows = order.rows(tried, min(tried + _AT_ONCE, most))
        values = evaluate(problem, rows).values
        found.append((rows[np.isfinite(values)], values[np.isfinite(values)]))
        tried += len(rows)
    configs, costs = (np.concatenate(column) for column in zip(*found, strict=True))
    if len(costs) < 2 or costs.min() <= 0:
        raise UserError(f"of {tried:,} candidates of {problem.id} {len(costs):,} succeeded, too few for a picture")
    return Sample(configs, costs, tried - len(costs), tried == problem.space.cardinality)


def space_data(problem: Problem, found: Sample) -> pd.DataFrame:
    """Return a row for each value of each parameter: parameter, effect, value, candidates, median and lowest cost.

    The effect of a parameter is the share of the variance of the logarithm of costs that its values explain alone,
    corrected for chance (epsilon squared, Kelley 1935). Parameters are sorted by it.
    """
    logs, rows = np.log(found.costs), []
    for i in range(len(problem.space)):
        groups = found.configs[:, i]
        effect = effect_of(groups, logs)
        for value in np.unique(groups):
            own = found.costs[groups == value]
            name = str(problem.space.values(i)[value])
            rows.append((i, problem.space.name(i), effect, name, len(own), float(np.median(own)), float(own.min())))
    columns = ["column", "parameter", "effect", "value", "candidates", "median", "lowest"]
    return pd.DataFrame(rows, columns=columns).sort_values("effect", ascending=False, kind="stable", ignore_index=True)


def effect_of(groups: NDArray, logs: NDArray[np.float64]) -> float:
    """Return the share of the variance of log costs that a parameter explains alone, adjusted for its number of values.

    Args:
      groups: the index of its value in each candidate.
    """
    _, place, count = np.unique(groups, return_inverse=True, return_counts=True)
    total, free = float(((logs - logs.mean()) ** 2).sum()), len(logs) - len(count)
    if not total or free < 1 or len(count) < 2:
        return 0.0
    within = float(((logs - (np.bincount(place, logs) / count)[place]) ** 2).sum())
    return max(0.0, 1 - within / total * (len(logs) - 1) / free)


@mpl.rc_context(style.SETTINGS)
def draw(problem: Problem, found: Sample) -> tuple[Figure, pd.DataFrame]:
    """Draw costs, effects and the two parameters with the largest effects; return the figure and its data."""
    data = space_data(problem, found)
    effects = data.drop_duplicates("column")
    figure = style.NotebookFigure(figsize=(13.0, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _costs(left, problem, found)
    _effects(middle, effects.head(_SHOWN))
    first, *others = effects["column"].tolist()
    _pair(right, problem, found, first, others[0]) if others else right.set_visible(False)
    figure.suptitle(
        f"{style.short(problem.id, 70)}: {len(found.costs):,} candidates", fontweight="bold", x=0.01, ha="left"
    )
    style.caption(figure, _caption(problem, found))
    return figure, data


def _costs(ax: Axes, problem: Problem, found: Sample) -> None:
    default = float(evaluate(problem, problem.default_row()[None]).values[0])
    low, high = found.costs.min(), found.costs.max()
    scale = np.geomspace if high > style.FAR * low else np.linspace
    edges = scale(low, high * (1 + 1e-9) if high > low else low + 1, 41)
    ax.hist(found.costs, edges.tolist(), color="#56B4E9")
    for value, colour, name in ((default, "#D55E00", "default"), (low, "#009E73", "lowest")):
        ax.axvline(value, color=colour, lw=1.4, label=f"{name}: {cost(value, problem.unit)}")
    if high > style.FAR * low:
        ax.set_xscale("log")
        style.plain_numbers(ax.xaxis)
    ax.set(xlabel=f"cost ({problem.unit})", ylabel="candidates")
    ax.legend(fontsize=8)
    style.title(ax, "Which costs are common")


def _effects(ax: Axes, effects: pd.DataFrame) -> None:
    names = [style.short(name, 26) for name in effects["parameter"]]
    ax.barh(range(len(names)), effects["effect"], color="#0072B2")
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.invert_yaxis()
    ax.set(xlabel="share of the variance of log costs", xlim=(0, max(0.01, 1.05 * effects["effect"].max())))
    ax.grid(axis="y", visible=False)
    style.title(ax, "Which parameters matter alone")


def _pair(ax: Axes, problem: Problem, found: Sample, first: int, second: int) -> None:
    """Draw the lowest cost for each pair of values, over the lowest of all."""
    sizes = problem.space.sizes[[second, first]]
    lowest = np.full(sizes, np.inf)
    np.minimum.at(lowest, (found.configs[:, second], found.configs[:, first]), found.costs)
    ratio = np.where(np.isfinite(lowest), lowest / found.costs.min(), np.nan)
    shown = ax.imshow(ratio, cmap="cividis_r", norm="log" if np.nanmax(ratio) > 1 else None, aspect="auto")
    for axis, column in ((ax.xaxis, first), (ax.yaxis, second)):
        values = [style.short(str(value), 12) for value in problem.space.values(column)]
        places = range(0, len(values), 1 + len(values) // _TICKS)
        axis.set_ticks(places, [values[i] for i in places], fontsize=7)
        axis.set_label_text(style.short(problem.space.name(column), 40))
    ax.tick_params(axis="x", rotation=50)
    ax.grid(visible=False)
    bar = ax.figure.colorbar(shown, ax=ax, label="lowest cost / lowest of all")
    style.plain_numbers(bar.ax.yaxis)
    style.title(ax, "The first two together")


def _caption(problem: Problem, found: Sample) -> str:
    total = problem.space.cardinality
    what = "The whole space" if found.whole else f"A random sample of {count_text(total)} candidates"
    failed = f"; {found.failed:,} more failed or are forbidden" if found.failed else ""
    return (
        f"{what}{failed}. Middle: how much of the variance of the logarithm of costs the values of one parameter "
        "explain alone; what is missing lies in how parameters work together. Right: a cell is the best candidate with "
        "these two values, 1 is the best of all; white: none succeeded."
    )
