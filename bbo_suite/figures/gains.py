"""The gain on each problem, sorted."""

from __future__ import annotations

from itertools import groupby

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..core.problem import family_of
from ..scores import final_values
from . import captions, style
from .highlight import labels
from .interactive import add_tooltip
from .speedup import speedup_data

PANELS = 6
NAMED = 40
"""Bars that are named, at most; more are grouped by family."""


def gains_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the bars: strategy, problem, runs, gain, low, high (mean speedup minus 1, 95 % interval of the mean).

    The best six strategies by mean rank, the best first; for each, the problems by falling gain, those of more than 40
    problems by family first.
    """
    order = final_values(frame).by_rank[:PANELS]
    data = speedup_data(frame)
    data = data[data["strategy"].isin(order)].assign(gain=lambda d: d["mean"] - 1)
    data[["low", "high"]] -= 1
    data["place"] = [order.index(name) for name in data["strategy"]]
    grouped = data["problem"].nunique() > NAMED
    data["group"] = [family_of(name) if grouped else "" for name in data["problem"]]
    by, rising = ["place", "group", "gain"], [True, True, False]
    data = data.sort_values(by, ascending=rising, kind="stable", ignore_index=True)
    return data[["strategy", "problem", "runs", "gain", "low", "high"]]


@mpl.rc_context(style.SETTINGS)
def draw(frame: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw the sorted gains as bars, a panel for each strategy; return the figure and its data (`gains_data`)."""
    data, shown = gains_data(frame), labels(frame)
    names = list(dict.fromkeys(data["strategy"]))
    most = data.groupby("strategy").size().max()
    figure, axes = style.panels(len(names), max(4.2, 1 + 0.13 * most), 3.4, 0.8, sharey=True)
    for ax, name in zip(axes.flat, names, strict=False):
        _panel(ax, data[data["strategy"] == name], most)
        style.title(ax, shown[name])
    _heights(axes.flat[0], data)
    for ax in axes[:, 0]:
        ax.set_ylabel("gain over the default")
    parts = captions.different_levels(final_values(frame).levels.values())
    style.caption(figure, _caption(frame, data) + captions.short_runs(frame) + parts)
    return figure, data


def _panel(ax: Axes, data: pd.DataFrame, most: int) -> None:
    gain, low, high = (data[column].to_numpy() for column in ("gain", "low", "high"))
    drawn = np.where(np.isfinite(gain) & (gain > -1), gain, 0)
    x = np.arange(len(data))
    bars = ax.bar(x, drawn, 0.8, color=style.looks(["one"])["one"].colour)
    for bar, row in zip(bars, data.to_dict("records"), strict=True):
        bounds = f" (95 %: {row['low']:.3%} to {row['high']:.3%})" if np.isfinite(row["low"]) else ""
        add_tooltip(bar, f"{row['problem']}: gain {row['gain']:.3%}{bounds}")
    known = np.isfinite(low) & (gain > -1)
    ax.errorbar(x[known], gain[known], yerr=np.vstack([gain - low, high - gain])[:, known], fmt="none", ecolor="0.15",
                capsize=2, lw=0.9)  # fmt: skip
    ax.axhline(0, color="0.35", lw=1)
    ax.set_xlim(-0.8, most - 0.2)
    _names(ax, data["problem"].tolist(), gain)
    ax.grid(axis="x", visible=False)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g} %")


def _names(ax: Axes, problems: list[str], gain: np.ndarray) -> None:
    """Name all problems, or the families of many."""
    odd = {-1.0: " (all failed)", np.inf: " (∞)"}
    places: list[float] = list(range(len(problems)))
    names = [style.short(name, 30) + odd.get(value, "") for name, value in zip(problems, gain, strict=True)]
    if len(problems) > NAMED:
        places, names = [], []
        for name, group in groupby(range(len(problems)), key=lambda i: family_of(problems[i])):
            members = list(group)
            places.append((members[0] + members[-1]) / 2)
            names.append(f"{style.short(name, 24)} ({len(members)})")
            ax.axvline(members[-1] + 0.5, color="0.85", lw=0.8)
    ax.set_xticks(places, names, rotation=50, ha="right", rotation_mode="anchor", fontsize=7.5)


def _heights(ax: Axes, data: pd.DataFrame) -> None:
    """Show all bars and their intervals."""
    bounds = data[["gain", "low", "high"]].to_numpy()
    usual = bounds[np.isfinite(bounds) & (bounds > -1)]
    bottom, top = usual.min(initial=0), usual.max(initial=0.001)
    ax.set_ylim(bottom - 0.05 * (top - bottom), top + 0.05 * (top - bottom))


def _caption(frame: pd.DataFrame, data: pd.DataFrame) -> str:
    known = frame["strategy"].nunique()
    shown = f" Shown: the best {PANELS} of {known} strategies by mean rank." if known > PANELS else ""
    return (
        f"Gain over the compiler's default (mean {captions.ratio(frame)} minus 1) on each problem, sorted, higher is "
        f"better, with 95 % intervals (bootstrap over runs); {captions.number_of_runs(data['runs'])} runs.{shown}"
    )


def missing(frame: pd.DataFrame) -> str | None:
    """Return why a study does not support the figure, or None."""
    return None if frame["problem"].nunique() > 2 else "needs three problems or more"
