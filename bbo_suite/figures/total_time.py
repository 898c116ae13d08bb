"""How good is the best candidate after so much time, the strategy's own included?"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..stats import quartiles
from . import curves, ends, style
from .cast import cast
from .drawing import Drawing, always

_COLUMNS = ["problem", "strategy", "seed", "speedup", "strategy_seconds", "evaluation_seconds", "uses_structure"]
_LEAST = 1e-6
"""Seconds; no clock tells less, and a log scale needs some."""


def total_time_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: problem, strategy, uses_structure, runs, seconds, lower, median, upper (of the speedup).

    A curve begins when all of its runs have a first candidate and ends where the shortest of them does.
    """
    made = []
    for (problem, strategy), group in frame[_COLUMNS].groupby(["problem", "strategy"], observed=True, sort=True):
        runs = [_run(run) for _, run in group.groupby("seed")]
        start, stop = max(clock[0] for clock, _ in runs), min(clock[-1] for clock, _ in runs)
        seconds = np.geomspace(start, max(start, stop), curves.POINTS if stop > start else 1)
        reached = [best[np.searchsorted(clock, seconds, side="right") - 1] for clock, best in runs]
        with np.errstate(invalid="ignore"):
            lower, median, upper = quartiles(reached)
        fixed = {"problem": problem, "strategy": strategy, "uses_structure": bool(group["uses_structure"].iloc[0])}
        numbers = {"seconds": seconds, "lower": lower, "median": median, "upper": upper}
        made.append(pd.DataFrame({**fixed, "runs": len(runs), **numbers}))
    return pd.concat(made, ignore_index=True)


def _run(run: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return when each candidate of a run was known, and the best speedup then."""
    spent = run["strategy_seconds"].to_numpy(np.float64) + run["evaluation_seconds"].to_numpy(np.float64)
    return np.maximum(_LEAST, np.cumsum(spent)), run["speedup"].to_numpy()


@mpl.rc_context(style.SETTINGS)
def total_time(frame: pd.DataFrame, problems: Sequence[str] | None = None) -> tuple[Figure, pd.DataFrame]:
    """Draw the median best speedup and its interquartile band against seconds, a panel for each problem.

    Returns the figure and the data it drew (see `total_time_data`).
    """
    shown, who = style.chosen(frame, problems), cast(frame)
    data = total_time_data(shown)
    figure = curves.draw(data, who, "seconds", _axis)
    words = "Seconds of the strategy and of the evaluations together, as measured in each run, on a log scale."
    style.caption(figure, curves.caption(data, who, words) + ends.cut_words(shown))
    return figure, data


def _axis(ax: Axes) -> None:
    ax.set(xscale="log", xlabel="total time")
    style.seconds(ax.xaxis)


DRAWING = Drawing("time", "How good is the best candidate after so much time?", total_time, always, paged=True)
