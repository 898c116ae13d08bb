"""The best candidate after each number of evaluations."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..stats import best_so_far, quartiles
from . import baselines, curves, final_values, style
from .highlight import highlighted

_COLUMNS = ["problem", "strategy", "seed", "value", "default"]


def convergence_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: problem, strategy, level, runs, evaluation, lower, median, upper.

    A curve ends with its shortest run; a long one is thinned to 400 points that are even on a log scale.
    """
    made = []
    for (problem, strategy), group in frame[final_values.with_flags(frame, _COLUMNS)].groupby(
        ["problem", "strategy"], observed=True, sort=True
    ):
        runs = final_values.values_by_run(group)
        shown = _thinned(min(map(len, runs)))
        best = np.array([best_so_far(run)[shown] for run in runs])
        with np.errstate(divide="ignore", invalid="ignore"):  # a cost of 0 is an infinite speedup
            lower, median, upper = quartiles(group["default"].iloc[0] / best)
        fixed = {"problem": problem, "strategy": strategy, **final_values.first_flags(group)}
        numbers = {"evaluation": shown + 1, "lower": lower, "median": median, "upper": upper}
        made.append(pd.DataFrame({**fixed, "runs": len(runs), **numbers}))
    return pd.concat(made, ignore_index=True)


def _thinned(length: int) -> np.ndarray:
    """Return the indices of the points of a log-scaled curve."""
    return np.unique(np.geomspace(1, length, curves.POINTS).astype(int)) - 1


@mpl.rc_context(style.SETTINGS)
def draw(frame: pd.DataFrame, problems: Sequence[str] | None = None) -> tuple[Figure, pd.DataFrame]:
    """Draw the median best speedup and its interquartile band against evaluations, a panel for each problem.

    Returns the figure and its data (see `convergence_data`).
    """
    shown, highlight = style.chosen(frame, problems), highlighted(frame)
    data = convergence_data(shown)
    figure = curves.draw(data, highlight, "evaluation", style.evaluations, baselines.all_known(frame))
    x_text = "One evaluation is one candidate; log scale."
    captions = baselines.caption(shown) + final_values.noisy_text(shown, curves=True) + final_values.cut_text(shown)
    style.caption(figure, curves.caption(data, highlight, x_text) + captions)
    return figure, data
