"""Strategies over many problems: their means as sorted bars."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..core.level import Level
from . import style

MOST = 25
"""Strategies that are drawn, at most."""
_COLOURS = {
    Level.COSTS: "#0072B2",
    Level.COMPILATION: "#CC79A7",
    Level.STRUCTURE: "#D55E00",
    Level.PARTS: "#009E73",
}


@mpl.rc_context(style.SETTINGS)
def draw(
    means: Mapping[str, tuple[float, float, float]], levels: Mapping[str, Level], what: str, spent: str
) -> tuple[Figure, pd.DataFrame]:
    """Draw the mean of each strategy with its interval, the best first; return the figure and its data.

    Args:
      means: mean and bounds of its interval, which may be nan.
      levels: what each strategy knows: it has the colour of that.
      what: the means are of.
      spent: the evaluations of a run, such as `1,000 evaluations`.
    """
    rows = [(name, *bounds, levels[name].word) for name, bounds in means.items() if np.isfinite(bounds[0])]
    data = pd.DataFrame(rows, columns=["strategy", "mean", "low", "high", "level"])
    data = data.sort_values("mean", ascending=False, kind="stable", ignore_index=True)[:MOST]
    figure, axes = style.panels(1, 6.4, 0.24 * len(data) + 0.8, 0.5)
    ax, ends = axes.flat[0], np.fmax(1, data[["mean", "high"]].max(axis=1))
    colours = [_COLOURS[levels[name]] for name in data["strategy"]]
    ax.barh(data.index, data["mean"] - 1, 0.72, left=1, color=colours)
    known = data[data["low"].notna()]
    ax.hlines(known.index, known["low"], known["high"], color="0.15", lw=1.2)
    for place, (mean, end) in enumerate(zip(data["mean"], ends, strict=True)):
        ax.annotate(style.ratio(mean), (end, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    ax.axvline(1, color="0.35", lw=1)
    ax.set_yticks(data.index, [style.label(name, levels[name], 30) for name in data["strategy"]], fontsize=8.5)
    ax.set(ylim=(len(data) - 0.4, -0.6), xlabel=what)
    ax.margins(x=0.12)
    ax.grid(axis="y", visible=False)
    bars = ", with 95 % intervals (bootstrap over runs)" if len(known) else ""
    more = f" Shown: the best {MOST} of {len(rows)}." if len(rows) > MOST else ""
    style.caption(
        figure,
        f"{what.capitalize()} after {spent}{bars}; higher is better. Bars start at 1, the default.{more}",
    )
    return figure, data
