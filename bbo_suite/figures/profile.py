"""The performance profile: how often a strategy is within a factor of the best one."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..scores import final_values
from ..stats import performance_profile
from . import captions, style
from .highlight import draw_shares, highlighted, legend


def profile_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: strategy, problems, factor, share.

    A strategy's cost on a problem is the default's cost divided by its mean speedup (Dolan and More 2002).
    """
    means = final_values(frame).complete
    with np.errstate(divide="ignore"):
        costs = 1 / means.to_numpy()
    factors = np.linspace(1, _widest(costs), 300)
    share = performance_profile(costs, factors)
    fixed = {"problems": len(means), "factor": np.tile(factors, len(share)), "share": share.ravel()}
    return pd.DataFrame({"strategy": np.repeat(means.columns.to_numpy(), len(factors)), **fixed})


def _widest(costs: np.ndarray) -> float:
    """Return the factor from which all curves are constant, at most 2."""
    best = costs.min(axis=1, keepdims=True)
    usual = np.isfinite(costs) & (best > 0)
    ratios = costs[usual] / np.broadcast_to(best, costs.shape)[usual]
    return float(np.clip(1 + 1.05 * (ratios.max(initial=1) - 1), 1.001, 2))


@mpl.rc_context(style.SETTINGS)
def draw(frame: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw each strategy's performance profile; return the figure and its data (`profile_data`)."""
    every, frame = frame, captions.ranked_together(frame)
    data = profile_data(frame)
    highlight = highlighted(every).only(data["strategy"])
    figure, axes = style.panels(1, 6.4, 3.6, 0.6 + 0.2 * len(highlight.legend) / 3)
    ax = axes.flat[0]
    draw_shares(ax, data, highlight, "factor", drawstyle="steps-post")
    ax.set(ylim=(-0.02, 1.02), ylabel="share of problems", xlabel="cost / cost of the best strategy")
    legend(figure, highlight.legend)
    used = captions.problems_used(frame, int(data["problems"].iloc[0]))
    runs = captions.runs_of(frame)
    style.caption(
        figure,
        f"Share of problems on which a strategy's cost is within a factor of the lowest cost, higher is better; at "
        f"factor 1 the strategy is the best. Over {used}; cost: that of the default / mean {captions.ratio(frame)} of "
        f"{runs} runs.{highlight.caption}"
        f"{captions.strategies_left_out(frame)}{captions.short_runs(frame)}{captions.ranked_apart(every)}",
    )
    return figure, data


def missing(frame: pd.DataFrame) -> str | None:
    """Return why a study does not support the figure, or None."""
    return captions.too_few(captions.ranked_together(frame), strategies=2, problems=3)
