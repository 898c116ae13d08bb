"""The best candidate after each number of evaluations."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..core.level import LEVEL
from ..scores import final_values
from ..stats import best_so_far, quartiles
from . import baselines, captions, curves, style
from .highlight import highlighted

_COLUMNS = ["problem", "strategy", "seed", "value", "default"]


def convergence_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: problem, strategy, level, runs, evaluation, lower, median, upper.

    A curve ends with its shortest run; a long one is thinned to 400 points that are even on a log scale.
    """
    made = []
    levels = final_values(frame).levels
    for (problem, strategy), group in frame[_COLUMNS].groupby(["problem", "strategy"], observed=True, sort=True):
        runs = curves.values_by_run(group)
        shown = _thinned(min(map(len, runs)))
        best = np.array([best_so_far(run)[shown] for run in runs])
        with np.errstate(divide="ignore", invalid="ignore"):  # a cost of 0 is an infinite speedup
            lower, median, upper = quartiles(group["default"].iloc[0] / best)
        fixed = {"problem": problem, "strategy": strategy, LEVEL: levels[str(strategy)].word}
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
    highlight, ratio = highlight.only(data["strategy"]), captions.ratio(shown)
    figure = curves.draw(data, highlight, "evaluation", style.evaluations, baselines.all_known(frame), ratio)
    x_text = "One evaluation is one candidate; log scale."
    notes = baselines.caption(shown) + captions.noisy_costs(shown, curves=True) + captions.short_runs(shown)
    style.caption(figure, curves.caption(data, highlight, ratio, x_text) + notes)
    return figure, data
