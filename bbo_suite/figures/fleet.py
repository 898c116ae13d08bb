"""What policies save of a fleet's chip time: from day to day, and by the daily budget."""

from __future__ import annotations

from collections.abc import Sequence

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
    """Draw savings, savings over cost and tuned kernels of each policy against the daily budget; bars of one budget.

    Args:
      frame: a row for each run, as `fleet --json` prints them.
    """
    looks, one = _looks(frame["policy"]), frame["budget"].nunique() == 1
    order = list(frame.groupby("policy")["saved"].mean().sort_values(ascending=False, kind="stable").index)
    with mpl.rc_context(style.SETTINGS):
        figure, axes = style.panels(3, 4.2, 3.3, 1.2, sharey=one)
        for ax, (column, (label, factor, scale)) in zip(axes.flat, _MEASURES.items(), strict=False):
            known = frame[frame[column] > 0] if scale == "log" else frame
            means = known.groupby(["policy", "budget"])[column].agg(["min", "mean", "max"]) * factor
            if one:
                _bars(ax, means, looks, order, scale)
                ax.set_xlabel(label)
            else:
                _lines(ax, means, looks)
                ax.set(xscale="log", yscale=scale, xlabel="budget, chip-seconds a day", ylabel=label)
            for axis in (ax.xaxis, ax.yaxis):
                if axis.get_scale() == "log":
                    style.plain_numbers(axis)
        if not one:
            axes[0, 0].set_ylim(0)
            figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center")
        seeds = frame["seed"].nunique()
        bars = f"; thin lines from the lowest to the highest of {seeds} fleets" if seeds > 1 else ", of one fleet"
        budget = f" With {frame['budget'].iloc[0]:,.0f} chip-seconds a day." if one else ""
        style.caption(figure, f"Means after day 10{bars}.{budget}")
        return figure


_MEASURES = {
    "saved": ("chip time saved, %", 100.0, "linear"),
    "savings_over_cost": ("savings / cost", 1.0, "log"),
    "kernels_a_day": ("kernels tuned a day", 1.0, "log"),
}


def _lines(ax: Axes, means: pd.DataFrame, looks: dict[str, style.Look]) -> None:
    for name, look in looks.items():
        if name in means.index:
            own = means.loc[name]
            ax.plot(own.index, own["mean"], look.marker, color=look.colour, linestyle=look.dash, label=name,
                    markersize=4)  # fmt: skip
            ax.vlines(own.index, own["min"], own["max"], color=look.colour, linewidth=1)


def _bars(ax: Axes, means: pd.DataFrame, looks: dict[str, style.Look], order: Sequence[str], scale: str) -> None:
    """Draw the only budget: a bar for each policy, or a dot where a log scale has no zero to begin at."""
    for place, name in enumerate(order):
        if name in means.index:
            own, look = means.loc[name].iloc[0], looks[name]
            if scale == "log":
                ax.plot(own["mean"], place, look.marker, color=look.colour)
            else:
                ax.barh(place, own["mean"], 0.72, color=look.colour)
            ax.hlines(place, own["min"], own["max"], color="0.15", linewidth=1)
            value = f"{own['mean']:,.0f}" if own["mean"] >= 100 else f"{own['mean']:.3g}"
            ax.annotate(value, (own["max"], place), xytext=(6, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set_yticks(range(len(order)), order)
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xscale(scale)
    ax.margins(x=0.25)
    ax.grid(axis="y", visible=scale == "log")
