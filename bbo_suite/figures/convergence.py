"""How good is the best candidate after so many evaluations?"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..stats import best_so_far, quartiles
from . import style
from .drawing import Drawing, always


def convergence_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: problem, strategy, uses_structure, runs, evaluation, lower, median, upper (of the speedup).

    A curve ends where the shortest of its runs does.
    """
    curves = []
    for (problem, strategy), group in frame.groupby(["problem", "strategy"], observed=True, sort=True):
        runs = [run for _, run in group.groupby("seed")]
        length = min(len(run) for run in runs)
        best = best_so_far([run["value"].to_numpy()[:length] for run in runs])
        with np.errstate(divide="ignore", invalid="ignore"):  # a cost of nothing is an infinite speedup
            lower, median, upper = quartiles(runs[0]["default"].iloc[0] / best)
        fixed = {"problem": problem, "strategy": strategy, "uses_structure": bool(group["uses_structure"].iloc[0])}
        numbers = {"evaluation": np.arange(1, length + 1), "lower": lower, "median": median, "upper": upper}
        curves.append(pd.DataFrame({**fixed, "runs": len(runs), **numbers}))
    return pd.concat(curves, ignore_index=True)


@mpl.rc_context(style.SETTINGS)
def convergence(frame: pd.DataFrame, problems: Sequence[str] | None = None) -> tuple[Figure, pd.DataFrame]:
    """Draw the median best speedup and its interquartile band against evaluations, a panel for each problem.

    Returns the figure and the data it drew (see `convergence_data`).
    """
    data = convergence_data(style.chosen(frame, problems))
    problems = list(dict.fromkeys(data["problem"]))
    looks = style.looks(sorted(set(frame["strategy"])))
    figure, axes = style.panels(len(problems), 4.2, 3.3, 1.1 + 0.2 * len(looks) / 3)
    for ax, problem in zip(axes.flat, problems, strict=False):
        _panel(ax, data[data["problem"] == problem], looks)
        style.title(ax, problem)
    for ax in axes[:, 0]:
        ax.set_ylabel("best speedup over the default")
    _legend(figure, data, looks)
    style.caption(figure, _caption(data))
    return figure, data


def _legend(figure: Figure, data: pd.DataFrame, looks: dict[str, style.Look]) -> None:
    marked = dict(zip(data["strategy"], data["uses_structure"], strict=True))
    names = [style.label(name, marked[name]) for name in looks]
    lines = [Line2D([], [], color=k.colour, linestyle=k.dash, marker=k.marker, markersize=4) for k in looks.values()]
    columns = max(1, int(figure.get_figwidth() * 11 / (max(map(len, names)) + 8)))
    legend = figure.legend(lines, ["x" * len(name) for name in names], ncols=columns, loc="outside upper left",
                           fontsize=8.5, handlelength=3.5)  # fmt: skip
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)  # afterwards: a legend leaves out a name that starts with an underscore


def _panel(ax: Axes, data: pd.DataFrame, looks: dict[str, style.Look]) -> None:
    ax.axhline(1, color="0.35", lw=1, ls=(0, (1, 2)))
    for place, (strategy, curve) in enumerate(data.groupby("strategy", observed=True)):
        look, shown = looks[str(strategy)], _thinned(len(curve))
        x, lower, upper = (curve[column].to_numpy()[shown] for column in ("evaluation", "lower", "upper"))
        marks = (0.05 + 0.03 * (place % 6), 0.18) if len(x) > 5 else 1  # shifted, so that they do not fall together
        ax.plot(x, curve["median"].to_numpy()[shown], color=look.colour, linestyle=look.dash, lw=1.6,
                marker=look.marker, markersize=4, markevery=marks)  # fmt: skip
        if curve["runs"].iloc[0] > 1:
            ax.fill_between(x, lower, upper, color=look.colour, alpha=0.15, lw=0)
    ax.annotate("default", (1, 1), xycoords=("axes fraction", "data"), xytext=(-2, -3), textcoords="offset points",
                ha="right", va="top", fontsize=8.5, color="0.35",
                bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.8})  # fmt: skip
    ax.set(ylim=_limits(data))
    style.evaluations(ax)


def _limits(data: pd.DataFrame) -> tuple[float, float]:
    """Return the range of speedups to show: what beats the default, and where each curve ends."""
    highest = data[["median", "upper"]].to_numpy().max(axis=1)
    top = max(1.0, highest[np.isfinite(highest)].max(initial=1.0))
    ends = data.groupby("strategy", observed=True)["median"].last().to_numpy()
    bottom = min(1 - 0.25 * (top - 1), ends.min())
    return max(0.0, bottom - 0.01) - 0.03 * (top - bottom), top + 0.06 * (top - bottom) + 0.005


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


DRAWING = Drawing(
    "convergence", "How good is the best candidate after so many evaluations?", convergence, always, paged=True
)
