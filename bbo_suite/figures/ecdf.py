"""How soon are targets reached, all problems together?"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..stats import LEAST_GAIN, LEAST_WORDS, best_so_far, first_hits, runtime_ecdf
from . import ends, style
from .cast import cast, draw_shares, legend
from .drawing import Drawing

TARGETS = 50
_COLUMNS = ["problem", "strategy", "seed", "value", "uses_structure"]


def ecdf_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: strategy, uses_structure, runs, problems, evaluation, share.

    The targets of a problem are 50 costs, evenly spaced from below the default's to the best that any run of the study
    found. The share of runs and targets reached is the mean over the problems of `ends.shared` on which a run beats the
    default by `LEAST_GAIN` (Hansen et al. 2021, COCO, with targets of our own).
    """
    targets = _targets(frame)
    grid = np.unique(np.geomspace(1, frame["evaluation"].max(), 300).astype(int))
    together = frame["strategy"].isin(ends.shared(frame).columns)
    part = frame.loc[together & frame["problem"].isin(list(targets)), _COLUMNS]
    shares = []
    for (problem, strategy), group in part.groupby(["problem", "strategy"], observed=True):
        runs = [best_so_far(run) for _, run in group.groupby("seed")["value"]]
        hits = np.vstack([first_hits([run], targets[str(problem)]) for run in runs])
        fixed = {"strategy": strategy, "uses_structure": group["uses_structure"].iloc[0], "runs": len(runs)}
        shares.append(pd.DataFrame({**fixed, "evaluation": grid, "share": runtime_ecdf(hits, grid)}))
    by = pd.concat(shares).groupby(["strategy", "evaluation"], observed=True)
    curves = by.agg(uses_structure=("uses_structure", "first"), runs=("runs", "sum"), share=("share", "mean"))
    return curves.reset_index().assign(problems=len(targets))


def _targets(frame: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Return the target costs of each problem that has any."""
    problems = set(ends.shared(frame).index)
    part = frame[frame["problem"].isin(problems)].groupby("problem", observed=True)
    default, best = part["default"].first(), part["value"].min()
    steps = np.arange(1, TARGETS) / TARGETS
    better = [str(problem) for problem in best.index[default / best - 1 >= LEAST_GAIN]]
    return {name: np.append(default[name] - (default[name] - best[name]) * steps, best[name]) for name in better}


@mpl.rc_context(style.SETTINGS)
def ecdf(frame: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw the share of runs and targets reached within so many evaluations; return also the data (`ecdf_data`)."""
    data = ecdf_data(frame)
    who = cast(frame).only(data["strategy"])
    figure, axes = style.panels(1, 9.4, 3.6, 0.6)
    ax = axes.flat[0]
    draw_shares(ax, data, who, "evaluation")
    ax.set(ylim=(-0.02, 1.02), ylabel="share of runs and targets reached")
    style.evaluations(ax)
    legend(figure, who.legend, beside=True)
    style.caption(figure, _caption(frame, data) + who.words + ends.absent_words(frame) + ends.cut_words(frame))
    return figure, data


def _caption(frame: pd.DataFrame, data: pd.DataFrame) -> str:
    used, common = int(data["problems"].iloc[0]), len(ends.shared(frame))
    words = ends.problems_words(frame, common)
    if used < common:
        words = f"{used} of {words}, those on which a run beats the default by {LEAST_WORDS} or more"
    last = data.groupby("strategy", observed=True)["runs"].first()
    return (
        f"Share of all runs and targets that were reached within so many evaluations, higher is better; mean over "
        f"{words}, {ends.runs_words(last)} runs a strategy in all. Targets: {TARGETS} costs a problem, evenly spaced "
        f"from the default's to the best found in this study."
    )


def _needs(frame: pd.DataFrame) -> str | None:
    none = f"needs a run that beats the default by {LEAST_WORDS} or more"
    return ends.lacks(frame, 1, 1) or (None if _targets(frame) else none)


DRAWING = Drawing("ecdf", "How soon are targets reached, all problems together?", ecdf, _needs)
