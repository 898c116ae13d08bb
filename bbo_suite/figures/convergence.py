"""The best candidate after each number of evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..core.level import LEVEL, Level
from ..scores import final_values, runs_by_strategy
from ..stats import best_so_far, quartiles
from . import baselines, captions, curves, style
from .highlight import Highlight, highlighted


def convergence_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: problem, strategy, level, runs, evaluation, lower, median, upper.

    A curve ends with its shortest run; a long one is thinned to 400 points that are even on a log scale.
    """
    made = []
    levels = final_values(frame).levels
    for problem, strategy, runs in runs_by_strategy(frame, ["value", "default"]):
        shown = _thinned(min(len(values) for values, _ in runs))
        best = np.array([best_so_far(values)[shown] for values, _ in runs])
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # a cost of 0 is an infinite speedup
            lower, median, upper = quartiles(runs[0][1][0] / best)
        fixed = {"problem": problem, "strategy": strategy, LEVEL: levels[strategy].word}
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


@mpl.rc_context(style.SETTINGS)
def draw_both(
    new: pd.DataFrame, old: pd.DataFrame, names: tuple[str, str], problem: str, strategies: Sequence[str]
) -> tuple[Figure, pd.DataFrame]:
    """Draw strategies on a problem in two studies: a colour for each, solid for the new study, dashed for the old.

    Args:
      new, old: frames of evaluations.
      names: of the new and of the old study.

    Returns:
      The figure and its data (see `convergence_data`), in which a strategy is named with its study.
    """
    parts, plain = [], style.looks(strategies)
    looks: dict[str, style.Look] = {}
    for frame, name, dash in ((new, names[0], "-"), (old, names[1], "--")):
        shown = frame[(frame["problem"] == problem) & frame["strategy"].isin(list(strategies))]
        part = convergence_data(shown)
        parts.append(part.assign(strategy=[f"{strategy}, {name}" for strategy in part["strategy"]]))
        looks |= {f"{each}, {name}": replace(plain[each], dash=dash) for each in strategies}
    data = pd.concat(parts, ignore_index=True)
    looks = {name: looks[name] for each in strategies for name in looks if name.startswith(f"{each}, ")}
    levels = {name: Level.named(word) for name, word in zip(data["strategy"], data[LEVEL], strict=True)}
    highlight, ratio = Highlight(looks, {name: name for name in looks}, levels), captions.ratio(new)
    figure = curves.draw(data, highlight, "evaluation", style.evaluations, {}, ratio)
    style.caption(figure, curves.caption(data, highlight, ratio, "Solid: the new study; dashed: the old one."))
    return figure, data
