"""What policies save of a fleet's chip time: from day to day, and by the daily budget."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import style

_ORDER = (
    *("oracle", "two-stage", "graybox-model", "model", "graybox", "transfer", "saving", "weight"),
    *("fifo", "none", "search"),
)
"""Policies that ship, in the order of their looks."""


def _looks(policies: pd.Series) -> dict[str, style.Look]:
    found = list(dict.fromkeys(policies))
    known = style.looks([*_ORDER, *(name for name in found if name not in _ORDER)])
    return {name: known[name] for name in sorted(found, key=list(known).index)}


def days(frame: pd.DataFrame) -> Figure:
    """Draw the share that each policy saves on each day, in a panel for each budget.

    Args:
      frame: the columns policy, budget, seed, day, version, saved and potential.
    """
    budgets, looks = sorted(frame["budget"].unique()), _looks(frame["policy"])
    with mpl.rc_context(style.SETTINGS):
        figure, axes = style.panels(len(budgets), 4.2, 3.3, 1.2, sharey=True)
        for ax, budget in zip(axes.flat, budgets, strict=False):
            _days(ax, frame[frame["budget"] == budget], looks)
            ax.set(title=f"{budget:,.0f} chip-seconds a day", xlabel="day", ylim=0)
        axes[0, 0].set_ylabel("chip time saved, % (higher is better)")
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right center")
        seeds = frame["seed"].nunique()
        what = f"Mean of {seeds} fleets. " if seeds > 1 else ""
        style.caption(figure, f"{what}{_NOTE}")
        return figure


_NOTE = (
    "Grey: what the best settings of all live kernels would save. Dotted line: a new compiler is released, and all"
    " results are old."
)


def _days(ax: Axes, frame: pd.DataFrame, looks: dict[str, style.Look]) -> None:
    means = frame.groupby(["policy", "day"])[["saved", "potential", "version"]].mean().reset_index()
    top = means.groupby("day")["potential"].mean()
    ax.fill_between(top.index, 100 * top, color="0.93", zorder=0)
    for name, look in looks.items():
        own = means[means["policy"] == name]
        ax.plot(own["day"], 100 * own["saved"], color=look.colour, linestyle=look.dash, label=name)
    changes = means.groupby("day")["version"].mean().diff()
    for day in changes[changes > 0].index:
        ax.axvline(day, color="0.4", linestyle=":")


def budgets(frame: pd.DataFrame) -> Figure:
    """Draw savings, savings over cost and tuned kernels of each policy against the daily budget.

    Args:
      frame: a row for each run, as `fleet --json` prints them.
    """
    looks = _looks(frame["policy"])
    measures = {
        "saved": ("chip time saved, %", 100.0, "linear"),
        "savings_over_cost": ("savings / cost", 1.0, "log"),
        "kernels_a_day": ("kernels tuned a day", 1.0, "log"),
    }
    with mpl.rc_context(style.SETTINGS):
        figure, axes = style.panels(3, 4.2, 3.3, 1.2)
        for ax, (column, (label, factor, scale)) in zip(axes.flat, measures.items(), strict=False):
            for name, look in looks.items():
                own = frame[(frame["policy"] == name) & (frame[column] > 0)].groupby("budget")[column]
                low, mean, high = (factor * own.agg(which) for which in ("min", "mean", "max"))
                ax.plot(mean.index, mean, look.marker, color=look.colour, linestyle=look.dash, label=name, markersize=4)
                ax.vlines(mean.index, low, high, color=look.colour, linewidth=1)
            ax.set(xscale="log", yscale=scale, xlabel="budget, chip-seconds a day", ylabel=label)
        axes[0, 0].set_ylim(0)
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right center")
        seeds = frame["seed"].nunique()
        bars = f"; bars from the lowest to the highest of {seeds} fleets" if seeds > 1 else ""
        style.caption(figure, f"Means after day 10{bars}.")
        return figure
