"""The share of targets reached after each number of evaluations, over all problems."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..core.level import LEVEL
from ..scores import final_values, runs_by_strategy
from ..stats import SMALLEST_GAIN, SMALLEST_GAIN_TEXT, best_so_far, first_hits, runtime_ecdf
from . import captions, style
from .highlight import draw_shares, highlighted, legend

TARGETS = 50


def ecdf_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: strategy, level, runs, problems, evaluation, share.

    The targets of a problem are 50 costs, evenly spaced from below the default's cost to the best cost of any run. The
    share of (run, target) pairs that were reached is averaged over the problems of `scores.Values.complete` on
    which a run beats the default by `SMALLEST_GAIN` (Hansen et al. 2021, COCO; the targets are ours).
    """
    targets = _targets(frame)
    grid = np.unique(np.geomspace(1, frame["evaluation"].max(), 300).astype(int))
    together, levels = set(final_values(frame).complete.columns), final_values(frame).levels
    shares = []
    for problem, strategy, runs in runs_by_strategy(frame, ["value"]):
        if strategy not in together or problem not in targets:
            continue
        hits = np.vstack([first_hits(best_so_far(values)[None], targets[problem]) for (values,) in runs])
        fixed = {"strategy": strategy, LEVEL: levels[strategy].word, "runs": len(runs)}
        shares.append(pd.DataFrame({**fixed, "evaluation": grid, "share": runtime_ecdf(hits, grid)}))
    by = pd.concat(shares).groupby(["strategy", "evaluation"], observed=True)
    means = by.agg(level=(LEVEL, "first"), runs=("runs", "sum"), share=("share", "mean"))
    return means.reset_index().assign(problems=len(targets))


def _targets(frame: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Return the target costs of each problem on which a run beats the default."""
    problems = set(final_values(frame).complete.index)
    default, best = dict[str, float](), dict[str, float]()
    for problem, _, runs in runs_by_strategy(frame, ["value", "default"]):
        if problem in problems:
            default[problem] = runs[0][1][0]
            best[problem] = min(best.get(problem, np.inf), *(values.min() for values, _ in runs))
    steps = np.arange(1, TARGETS) / TARGETS
    with np.errstate(divide="ignore", over="ignore"):
        better = [name for name in best if default[name] / best[name] - 1 >= SMALLEST_GAIN]
    return {name: np.append(default[name] - (default[name] - best[name]) * steps, best[name]) for name in better}


@mpl.rc_context(style.SETTINGS)
def draw(frame: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw the share of (run, target) pairs against evaluations; return the figure and its data (`ecdf_data`)."""
    data = ecdf_data(frame)
    highlight = highlighted(frame).only(data["strategy"])
    figure, axes = style.panels(1, 6.4, 3.6, 0.6 + 0.2 * len(highlight.legend) / 3)
    ax = axes.flat[0]
    draw_shares(ax, data, highlight, "evaluation")
    ax.set(ylim=(-0.02, 1.02), ylabel="share of runs and targets reached")
    style.evaluations(ax)
    legend(figure, highlight.legend)
    style.caption(
        figure,
        _caption(frame, data) + highlight.caption + captions.strategies_left_out(frame) + captions.short_runs(frame),
    )
    return figure, data


def _caption(frame: pd.DataFrame, data: pd.DataFrame) -> str:
    used, common = int(data["problems"].iloc[0]), len(final_values(frame).complete)
    over = captions.problems_used(frame, common)
    if used < common:
        over = f"{used} of {over}, those on which a run beats the default by {SMALLEST_GAIN_TEXT} or more"
    last = data.groupby("strategy", observed=True)["runs"].first()
    return (
        f"Share of all (run, target) pairs that were reached within a number of evaluations, higher is better; mean "
        f"over {over}, {captions.number_of_runs(last)} runs per strategy in total. Targets: {TARGETS} costs per "
        f"problem, evenly spaced from the default's cost to the best cost found in this study."
    )


def missing(frame: pd.DataFrame) -> str | None:
    """Return why a study does not support the figure, or None."""
    none = f"needs a run that beats the default by {SMALLEST_GAIN_TEXT} or more"
    return captions.too_few(frame, 1, 1) or (None if _targets(frame) else none)
