"""How much is gained on which problem?"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import ends, style
from .bars import speedup_data
from .cast import labels
from .drawing import Drawing

PANELS = 6
LARGE = 0.05
"""A gain from which on a problem is named, as in XTAT (Phothilimthana et al. 2021, figure 7)."""


def gains_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the bars: strategy, problem, runs, gain, low, high (mean speedup minus 1, 95 % interval of the mean).

    The best six strategies by mean rank, the best first; of each, the problems by falling gain.
    """
    order = ends.by_rank(ends.table(frame))[:PANELS]
    data = speedup_data(frame)
    data = data[data["strategy"].isin(order)].assign(gain=lambda d: d["mean"] - 1)
    data[["low", "high"]] -= 1
    data["place"] = [order.index(name) for name in data["strategy"]]
    data = data.sort_values(["place", "gain"], ascending=[True, False], kind="stable", ignore_index=True)
    return data[["strategy", "problem", "runs", "gain", "low", "high"]]


@mpl.rc_context(style.SETTINGS)
def gains(frame: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw each problem's gain as a bar, sorted, a panel for each strategy; return also the data (`gains_data`)."""
    data, words = gains_data(frame), labels(frame)
    names = list(dict.fromkeys(data["strategy"]))
    most = data.groupby("strategy").size().max()
    figure, axes = style.panels(len(names), max(4.2, 1 + 0.13 * most), 3.4, 0.8, sharey=True)
    for ax, name in zip(axes.flat, names, strict=False):
        _panel(ax, data[data["strategy"] == name], most)
        style.title(ax, words[name])
    _heights(axes.flat[0], data)
    for ax in axes[:, 0]:
        ax.set_ylabel("gain over the default")
    low, high = axes.flat[0].get_ylim()
    long = " Longer intervals end at the edge." if data["low"].min() < low or data["high"].max() > high else ""
    style.caption(figure, _caption(frame, data) + long + ends.cut_words(frame))
    return figure, data


def _panel(ax: Axes, data: pd.DataFrame, most: int) -> None:
    gain, low, high = (data[column].to_numpy() for column in ("gain", "low", "high"))
    drawn = np.where(np.isfinite(gain) & (gain > -1), gain, 0)
    x = np.arange(len(data))
    ax.bar(x, drawn, 0.8, color=style.looks(["one"])["one"].colour)
    known = np.isfinite(low) & (gain > -1)
    ax.errorbar(x[known], gain[known], yerr=np.vstack([gain - low, high - gain])[:, known], fmt="none", ecolor="0.15",
                capsize=2, lw=0.9)  # fmt: skip
    ax.axhline(0, color="0.35", lw=1)
    ax.set(xlim=(-0.8, most - 0.2), xlabel="problems, by gain")
    _names(ax, data["problem"].tolist(), gain)
    ax.grid(axis="x", visible=False)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g} %")


def _names(ax: Axes, problems: list[str], gain: np.ndarray) -> None:
    """Name the large gains under their bars, and what could not be drawn."""
    odd = {-1.0: " (all failed)", np.inf: " (∞)"}
    named = [i for i, value in enumerate(gain) if value in odd or value >= LARGE]
    words = [style.short(problems[i], 30) + odd.get(gain[i], "") for i in named]
    ax.set_xticks(named, words, rotation=50, ha="right", rotation_mode="anchor", fontsize=7.5)


def _heights(ax: Axes, data: pd.DataFrame) -> None:
    """Show all bars, and of the intervals, which two runs make very wide, no more than half a bar's length beyond."""
    gain, low, high = (data[column].to_numpy() for column in ("gain", "low", "high"))
    usual = gain[np.isfinite(gain) & (gain > -1)]
    least, most = usual.min(initial=0), usual.max(initial=0.001)
    reach = 0.5 * (most - least)
    bottom, top = np.fmax(least - reach, np.nanmin([*low, least])), np.fmin(most + reach, np.nanmax([*high, most]))
    ax.set_ylim(bottom - 0.05 * (top - bottom), top + 0.05 * (top - bottom))


def _caption(frame: pd.DataFrame, data: pd.DataFrame) -> str:
    known = frame["strategy"].nunique()
    shown = f" Shown: the best {PANELS} of {known} strategies by mean rank." if known > PANELS else ""
    return (
        f"Gain over the compiler's default (mean speedup minus 1) on each problem, higher is better, with 95 % "
        f"intervals (Student's t); {ends.runs_words(data['runs'])} runs. Gains of {100 * LARGE:g} % or more are named."
        f"{shown}"
    )


DRAWING = Drawing(
    "gains",
    "How much is gained on which problem?",
    gains,
    lambda frame: None if frame["problem"].nunique() > 2 else "needs three problems or more",
)
