"""A heat map: each strategy's share of the best gain on each problem."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from ..core.level import Level
from ..scores import final_values, normalised_gain
from . import captions, style
from .highlight import labels
from .interactive import add_tooltip

COLUMNS = 60
"""Problems that are shown, at most."""
MATTERS = 1e-3
"""Smallest best gain of a problem of which shares have a colour."""


def heat_data(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the cells: strategy, problem, speedup (mean), share (of the best strategy's gain), best first;
    strategies that see costs of parts are ranked apart, after the others.

    The share is nan on problems where no strategy gains `MATTERS`, and 1 for an infinite speedup.
    """
    values = final_values(frame)
    apart = {name: level is Level.PARTS for name, level in values.levels.items()}
    best = {(mean.problem, mean.strategy): values.best_mean(mean.problem, mean.strategy) for mean in values.means}
    cells = pd.DataFrame(
        [(m.strategy, m.problem, m.mean, _share(m.mean, best[m.problem, m.strategy])) for m in values.means],
        columns=["strategy", "problem", "speedup", "share"],
    ).dropna(subset="speedup")
    shares = cells["share"].clip(lower=0).groupby(cells["strategy"]).mean().fillna(0)
    order = sorted(shares.sort_values(ascending=False, kind="stable").index, key=apart.__getitem__)
    place = cells["strategy"].map({name: number for number, name in enumerate(order)})
    return cells.assign(place=place).sort_values(["place", "problem"], ignore_index=True).drop(columns="place")


def _share(mean: float, best: float) -> float:
    """Return the normalised gain; 1 for an infinite speedup."""
    return float(np.isinf(mean)) if np.isinf(best) else normalised_gain(mean, best, MATTERS)


@mpl.rc_context(style.SETTINGS)
def draw(frame: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw the share of the best gain by strategy and problem; return the figure and its data (`heat_data`)."""
    data, names = heat_data(frame), labels(frame)
    best = data.groupby("problem")["speedup"].max().sort_values(ascending=False, kind="stable")
    data = data[data["problem"].isin(best.index[:COLUMNS])]
    rows, columns = list(dict.fromkeys(data["strategy"])), sorted(set(data["problem"]))
    size = (max(6.4, 2.6 + 0.46 * len(columns)), 2.8 + 0.28 * len(rows))
    figure = style.NotebookFigure(figsize=size, layout="constrained")
    ax = figure.subplots()
    cells = data.pivot(index="strategy", columns="problem", values="share").loc[rows, columns]
    shown = np.clip(cells.to_numpy(np.float64), 0, 1)
    blues = mpl.colormaps["Blues"].with_extremes(bad="0.93")
    ax.imshow(shown, cmap=blues, vmin=0, vmax=1.25, aspect="auto")  # a darker blue would hide the numbers
    for _, cell in data.iterrows():
        about = f"{names[cell['strategy']]} on {cell['problem']}: {captions.ratio(frame)} {cell['speedup']:.4f}"
        place = rows.index(cell["strategy"]), columns.index(cell["problem"])
        add_tooltip(_write(ax, *place, cell["speedup"], cell["share"]), about)
    ax.set_yticks(range(len(rows)), [names[name] for name in rows], fontsize=9)
    problems = [style.short(name, 34) for name in columns]
    ax.set_xticks(range(len(columns)), problems, rotation=50, ha="right", rotation_mode="anchor", fontsize=8.5)
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    more = captions.short_runs(frame) + captions.noisy_costs(frame) + _apart_text(frame)
    style.caption(figure, _caption(frame, len(best)) + more)
    return figure, data


def _write(ax: Axes, row: int, column: int, speedup: float, share: float) -> Text:
    text = "failed" if speedup == 0 else gain_text(speedup - 1)
    colour = "white" if share > 0.75 else "0.1"
    return ax.text(column, row, text, ha="center", va="center", fontsize=6.5 if speedup == 0 else 8, color=colour)


def gain_text(gain: float) -> str:
    """Return a gain in percent, in at most five characters."""
    percent = 100 * gain
    if not np.isfinite(percent):
        return "∞"
    digits = 0 if abs(percent) >= 99.5 else 1 if abs(percent) >= 0.95 else 2
    return f"{percent:.{digits}f}" if abs(percent) < 99_999 else f"{percent:.0e}"


def _caption(frame: pd.DataFrame, known: int) -> str:
    runs = captions.runs_of(frame)
    shown = f" Shown: the {COLUMNS} of {known} problems with the largest gain." if known > COLUMNS else ""
    return (
        f"Number: gain over the compiler's default in percent (mean {captions.ratio(frame)} of {runs} runs, minus 1), "
        f"higher is better, below 0 is slower. Colour: the gain as a share of the best strategy's on the same problem, "
        f"strong is the best; none where the best gain is below {100 * MATTERS:g} %. Rows are sorted by their mean "
        f"share. Empty cell: no run.{shown}"
    )


def _apart_text(frame: pd.DataFrame) -> str:
    text = captions.different_levels(final_values(frame).levels.values())
    return f" Strategies that see parts: below the others, with shares of their own best.{text}" if text else ""


def missing(frame: pd.DataFrame) -> str | None:
    """Return why a study does not support the figure, or None."""
    enough = min(final_values(frame).table.shape) > 1
    return None if enough else "needs two strategies and two problems or more"
