"""How often is a strategy within a factor of the best one?"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..stats import performance_profile
from . import ends, style
from .cast import cast, draw_shares, legend
from .drawing import Drawing


def profile_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: strategy, problems, factor, share.

    A strategy's cost on a problem is the default's over its mean speedup (Dolan and More 2002).
    """
    means = ends.shared(frame)
    with np.errstate(divide="ignore"):
        costs = 1 / means.to_numpy()
    factors = np.linspace(1, _widest(costs), 300)
    share = performance_profile(costs, factors)
    fixed = {"problems": len(means), "factor": np.tile(factors, len(share)), "share": share.ravel()}
    return pd.DataFrame({"strategy": np.repeat(means.columns.to_numpy(), len(factors)), **fixed})


def _widest(costs: np.ndarray) -> float:
    """Return the factor beyond which nothing changes, or at most 2."""
    best = costs.min(axis=1, keepdims=True)
    usual = np.isfinite(costs) & (best > 0)
    ratios = costs[usual] / np.broadcast_to(best, costs.shape)[usual]
    return float(np.clip(1 + 1.05 * (ratios.max(initial=1) - 1), 1.001, 2))


@mpl.rc_context(style.SETTINGS)
def profile(frame: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw the share of problems on which each strategy is within a factor of the best; return also the data."""
    data = profile_data(frame)
    who = cast(frame).only(data["strategy"])
    figure, axes = style.panels(1, 9.4, 3.6, 0.6)
    ax = axes.flat[0]
    draw_shares(ax, data, who, "factor", drawstyle="steps-post")
    ax.set(ylim=(-0.02, 1.02), ylabel="share of problems", xlabel="cost, in multiples of the best strategy's")
    legend(figure, who.legend, beside=True)
    used = ends.problems_words(frame, int(data["problems"].iloc[0]))
    runs = ends.runs_words(ends.ends(frame).groupby(["problem", "strategy"]).size())
    style.caption(
        figure,
        f"Share of problems on which a strategy's cost is within a factor of the best strategy's, higher is better; at "
        f"factor 1 it is the best. Over {used}; cost: the default's over the mean speedup of {runs} runs.{who.words}"
        f"{ends.absent_words(frame)}{ends.cut_words(frame)}",
    )
    return figure, data


DRAWING = Drawing(
    "profile",
    "How often is a strategy within a factor of the best one?",
    profile,
    lambda frame: ends.lacks(frame, strategies=2, problems=3),
)
