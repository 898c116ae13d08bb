"""The best candidate against total time: that of the strategy and of the evaluations."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..core.level import LEVEL
from ..scores import final_values, runs_by_strategy
from ..stats import quartiles
from . import baselines, captions, curves, style
from .highlight import highlighted

_COLUMNS = ["strategy_seconds", "evaluation_seconds", "speedup"]
_LEAST = 1e-6
"""Seconds, the resolution of a clock: the least that a log scale shows."""


def total_time_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: problem, strategy, level, runs, seconds, lower, median, upper (speedups),
    ended (the number of runs).

    A curve begins when all of its runs have a candidate and ends with the longest of them. A run that has ended keeps
    its best.
    """
    made = []
    levels = final_values(frame).levels
    for problem, strategy, columns in runs_by_strategy(frame, _COLUMNS):
        runs = [_run(*run) for run in columns]
        start, stop = max(clock[0] for clock, _ in runs), max(clock[-1] for clock, _ in runs)
        seconds = np.geomspace(start, max(start, stop), curves.POINTS if stop > start else 1)
        reached = [best[np.searchsorted(clock, seconds, side="right") - 1] for clock, best in runs]
        with np.errstate(invalid="ignore"):
            lower, median, upper = quartiles(reached)
        fixed = {"problem": problem, "strategy": strategy, LEVEL: levels[strategy].word}
        ended = np.sum([seconds > clock[-1] for clock, _ in runs], axis=0)
        numbers = {"seconds": seconds, "lower": lower, "median": median, "upper": upper, "ended": ended}
        made.append(pd.DataFrame({**fixed, "runs": len(runs), **numbers})[_corners(lower, median, upper, ended)])
    return pd.concat(made, ignore_index=True)


def _corners(*curves: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which points differ from a neighbour in a curve; the ends are always among them."""
    moves = np.any([curve[1:] != curve[:-1] for curve in curves], axis=0)
    return np.r_[True, moves] | np.r_[moves, True]


def _run(own: NDArray, evaluations: NDArray, best: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the seconds at which each candidate of a run was known, and the best speedup at that time."""
    clock = np.add(own, evaluations, dtype=np.float64)
    np.cumsum(clock, out=clock)
    return np.maximum(_LEAST, clock, out=clock), best


@mpl.rc_context(style.SETTINGS)
def draw(frame: pd.DataFrame, problems: Sequence[str] | None = None) -> tuple[Figure, pd.DataFrame]:
    """Draw the median best speedup and its interquartile band against seconds, a panel for each problem.

    Returns the figure and its data (see `total_time_data`).
    """
    shown, highlight = style.chosen(frame, problems), highlighted(frame)
    data = total_time_data(shown)
    highlight, ratio = highlight.only(data["strategy"]), captions.ratio(shown)
    figure = curves.draw(data, highlight, "seconds", _axis, baselines.all_known(frame), ratio)
    x_text = "Time of the strategy plus time of the evaluations, as measured in each run, on a log scale."
    if (data["ended"] > 0).any():
        x_text += " A cross: the first run of the strategy ends here, and keeps its best while the others go on."
    notes = baselines.caption(shown) + captions.noisy_costs(shown, curves=True) + captions.short_runs(shown)
    style.caption(figure, curves.caption(data, highlight, ratio, x_text) + notes)
    return figure, data


def _axis(ax: Axes) -> None:
    ax.set(xscale="log", xlabel="total time")
    style.seconds(ax.xaxis)
