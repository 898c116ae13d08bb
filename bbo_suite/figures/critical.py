"""The critical-difference diagram: which strategies differ significantly over all problems."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ..scores import final_values
from ..stats import ranking
from . import captions, style
from .highlight import labels


def critical_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the strategies by mean rank: strategy, rank, groups, problems, friedman, difference.

    A strategy's score on a problem is the mean speedup over the repeats. `groups` are the numbers of the bars above
    it: a bar joins strategies whose mean ranks differ by less than `difference` (see `stats.Ranking`).

    Args:
      frame: of a study; the strategies and problems of `scores.Values.complete` are used.
    """
    means = final_values(frame).complete
    found = ranking(means.to_numpy())
    order = np.argsort(found.ranks, kind="stable")
    ranks = found.ranks[order]
    bars = _bars(ranks, found.difference)
    groups = [tuple(i for i, (first, last) in enumerate(bars) if first <= k <= last) for k in range(len(order))]
    fixed = {"problems": len(means), "friedman": found.p, "difference": found.difference}
    return pd.DataFrame({"strategy": means.columns[order], "rank": ranks, "groups": groups, **fixed})


def _bars(ranks: NDArray[np.float64], difference: float) -> list[tuple[int, int]]:
    """Return the first and last of each maximal group of two or more of `(k,)` sorted ranks within the difference."""
    bars: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = int(np.searchsorted(ranks, rank + difference, side="left")) - 1
        if last > first and not (bars and bars[-1][1] >= last):
            bars.append((first, last))
    return bars


@mpl.rc_context(style.SETTINGS)
def draw(frame: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw the critical-difference diagram (Demsar 2006); return the figure and its data (`critical_data`)."""
    unranked, frame = captions.ranked_apart(frame), captions.ranked_together(frame)
    data = critical_data(frame)
    bars = sorted({group for groups in data["groups"] for group in groups})
    height = 0.13 * len(bars) + 0.26 * ((len(data) + 1) // 2)
    figure, axes = style.panels(1, 9.4, height, 1.3)
    ax = axes.flat[0]
    first = np.floor(data["rank"].min())
    ax.set(xlim=(first, max(first + 1, np.ceil(data["rank"].max()))), ylim=(-height, 0.05))
    _axis(ax)
    for place, bar in enumerate(bars):
        ranks = data.loc[[bar in groups for groups in data["groups"]], "rank"]
        ax.plot([ranks.min() - 0.03, ranks.max() + 0.03], [-0.13 * (place + 1)] * 2, color="0.1", lw=3.2,
                solid_capstyle="butt", clip_on=False)  # fmt: skip
    _names(ax, data, labels(frame), -0.13 * len(bars))
    left_out = captions.strategies_left_out(frame) + captions.short_runs(frame) + unranked
    style.caption(figure, _caption(frame, data) + left_out)
    return figure, data


def _axis(ax: Axes) -> None:
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("mean rank, 1 is best", fontsize=9)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_yticks([])
    ax.grid(visible=False)
    for side in ("left", "right", "bottom"):
        ax.spines[side].set_visible(False)
    ax.spines["top"].set_visible(True)


def _names(ax: Axes, data: pd.DataFrame, names: dict[str, str], start: float) -> None:
    """Write the better half at the left end and the other half at the right end, each joined to its rank."""
    half = (len(data) + 1) // 2
    for place, (name, rank) in enumerate(zip(data["strategy"], data["rank"], strict=True)):
        left = place < half
        row = place if left else len(data) - 1 - place
        y, x = start - 0.26 * (row + 0.75), 0.0 if left else 1.0
        end = ax.get_xlim()[not left]
        ax.plot([rank, rank, end], [0, y, y], color="0.45", lw=0.9, clip_on=False)
        ax.annotate(f"{names[name]}  {rank:.2f}" if left else f"{rank:.2f}  {names[name]}", (x, y),
                    xycoords=("axes fraction", "data"), xytext=(-4 if left else 4, 0), textcoords="offset points",
                    ha="right" if left else "left", va="center", fontsize=9, annotation_clip=False)  # fmt: skip


def _caption(frame: pd.DataFrame, data: pd.DataFrame) -> str:
    used = captions.problems_used(frame, int(data["problems"].iloc[0]))
    runs = captions.runs_of(frame)
    p = data["friedman"].iloc[0]
    friedman = f" Difference between any of them: p = {p:.2g} (Friedman)." if np.isfinite(p) else ""
    return (
        f"Mean rank over {used}, by mean {captions.ratio(frame)} of {runs} runs; lower is better. A bar joins "
        "strategies that do not differ significantly at 5 %: mean ranks closer than "
        f"{data['difference'].iloc[0]:.2f} (Nemenyi).{friedman}"
    )


def missing(frame: pd.DataFrame) -> str | None:
    """Return why a study does not support the figure: with fewer problems no pair can differ significantly."""
    return captions.too_few(captions.ranked_together(frame), strategies=3, problems=4)
