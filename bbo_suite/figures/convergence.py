"""How good is the best candidate after so many evaluations?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..stats import best_so_far, quartiles
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def convergence_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: problem, strategy, uses_structure, runs, evaluation, lower, median, upper (of the speedup).

    A curve ends where the shortest of its runs does.
    """
    curves = []
    for (problem, strategy), group in frame.groupby(["problem", "strategy"], observed=True, sort=True):
        runs = [run for _, run in group.groupby("seed")]
        length = min(len(run) for run in runs)
        best = best_so_far([run["value"].to_numpy()[:length] for run in runs])
        lower, median, upper = quartiles(runs[0]["default"].iloc[0] / best)
        fixed = {"problem": problem, "strategy": strategy, "uses_structure": bool(group["uses_structure"].iloc[0])}
        numbers = {"evaluation": np.arange(1, length + 1), "lower": lower, "median": median, "upper": upper}
        curves.append(pd.DataFrame({**fixed, "runs": len(runs), **numbers}))
    return pd.concat(curves, ignore_index=True)


def convergence(frame: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw the median best speedup and its interquartile band against evaluations, a panel for each problem.

    Returns the figure and the data it drew (see `convergence_data`).
    """
    import matplotlib.pyplot as plt

    data = convergence_data(frame)
    problems = list(dict.fromkeys(data["problem"]))
    columns = min(3, len(problems))
    rows = math.ceil(len(problems) / columns)
    size = (max(6.4, 4.2 * columns), 3.3 * rows + 1.1)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    plt.close(figure)  # it is returned, not shown
    looks = style.looks(sorted(set(data["strategy"])))
    for ax, problem in zip(axes.flat, problems, strict=False):
        _panel(ax, data[data["problem"] == problem], looks)
        ax.set_title(problem)
    for ax in axes.flat[len(problems) :]:
        ax.set_visible(False)
    handles = {h.get_label(): h for ax in axes.flat for h in ax.get_legend_handles_labels()[0]}
    axes.flat[0].legend(handles.values(), handles.keys(), loc="upper left", fontsize=8.5)
    style.caption(figure, _caption(data))
    return figure, data


def _panel(ax: Axes, data: pd.DataFrame, looks: dict[str, style.Look]) -> None:
    for strategy, curve in data.groupby("strategy", observed=True):
        name, look = str(strategy), looks[str(strategy)]
        shown = _thinned(len(curve))
        x, lower, upper = (curve[column].to_numpy()[shown] for column in ("evaluation", "lower", "upper"))
        legend = style.label(name, curve["uses_structure"].iloc[0])
        ax.plot(x, curve["median"].to_numpy()[shown], color=look.colour, linestyle=look.dash, lw=1.8, label=legend)
        if curve["runs"].iloc[0] > 1:
            ax.fill_between(x, lower, upper, color=look.colour, alpha=0.18, lw=0)
    ax.axhline(1, color="0.35", lw=1, ls=(0, (1, 2)))
    top = max(float(data["median"].max()), float(data["upper"].max()), 1.0)
    ax.set_ylim(max(0.0, 1 - 0.25 * (top - 1) - 0.01), top + 0.06 * (top - 1) + 0.005)
    ax.annotate("default", (1, 1), xycoords=("axes fraction", "data"), xytext=(-2, -3), textcoords="offset points",
                ha="right", va="top", fontsize=8.5, color="0.35")  # fmt: skip
    ax.set(xscale="log", xlabel="evaluations", ylabel="best speedup over the default")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _thinned(length: int) -> np.ndarray:
    """Return places that draw a log-scaled curve of any length with at most some 400 points."""
    return np.unique(np.geomspace(1, length, 400).astype(int)) - 1


def _caption(data: pd.DataFrame) -> str:
    counts = sorted(set(data["runs"]))
    runs = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    band = "median and interquartile band" if counts[-1] > 1 else "single runs, so no band"
    text = f"Best speedup so far over the compiler's default, higher is better; {band}, {runs} runs a strategy."
    return (
        f"{text} Unit: default's cost / candidate's cost. One evaluation is one candidate; evaluations on a log scale."
    )
