"""How well a strategy's models choose: how much more often their picks improve than random changes do."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import style
from .highlight import legend

_HITS = "hits/"


def hits_data(diagnostics: pd.DataFrame) -> pd.DataFrame:
    """Return the lines: problem, strategy, model, evaluation, hits (median over the runs), runs.

    Args:
      diagnostics: of a study (see `bbo_suite.store.diagnostics.load_diagnostics`); only hit rates are used.
    """
    rates = diagnostics[diagnostics["name"].str.startswith(_HITS)]
    rates = rates.assign(model=rates["name"].str.removeprefix(_HITS))
    keys = ["problem", "strategy", "model", "evaluation"]
    return rates.groupby(keys, observed=True)["value"].agg(hits="median", runs="size").reset_index()


@mpl.rc_context(style.SETTINGS)
def draw(diagnostics: pd.DataFrame, problems: Sequence[str] | None = None) -> tuple[Figure, pd.DataFrame]:
    """Draw the hit rate of each kind of models over chance, a panel for each problem and strategy.

    Returns the figure and its data (see `hits_data`).
    """
    rates = hits_data(diagnostics)
    looks = style.looks(sorted(set(rates["model"])))
    data = style.chosen(rates, problems)
    panels = list(data.groupby(["problem", "strategy"], observed=True, sort=True))
    figure, axes = style.panels(len(panels), 4.2, 3.0, 1.2)
    for ax, ((problem, strategy), lines) in zip(axes.flat, panels, strict=False):
        _panel(ax, lines, looks)
        style.title(ax, f"{problem}, {strategy}")
    for ax in axes[:, 0]:
        ax.set_ylabel("improving picks / chance")
    if len(looks) > 1:
        legend(figure, looks)
    style.caption(figure, _caption(data))
    return figure, data


def _panel(ax: Axes, lines: pd.DataFrame, looks: dict[str, style.Look]) -> None:
    ax.axhline(1, color="0.35", lw=1, ls=(0, (1, 2)))
    for model, line in lines.groupby("model", observed=True):
        look = looks[str(model)]
        ax.plot(line["evaluation"], line["hits"], color=look.colour, linestyle=look.dash, lw=1.6, marker=look.marker,
                markersize=4)  # fmt: skip
    ax.annotate("chance", (1, 1), xycoords=("axes fraction", "data"), xytext=(-2, 3), textcoords="offset points",
                ha="right", va="bottom", fontsize=8.5, color="0.35")  # fmt: skip
    ax.set_ylim(0, max(2.0, 1.1 * lines["hits"].max()))
    style.evaluations(ax)


def _caption(data: pd.DataFrame) -> str:
    most = data["runs"].max()
    runs = f"{most} runs, or of those that reported it at that point" if most > 1 else "one run"
    return (
        "How well picks were chosen: the improving share of the changes that the models chose, over that of random "
        f"changes of the same run, higher is better; 1 is as good as chance; median of {runs}. Evaluations on a log "
        "scale."
    )


def missing(diagnostics: pd.DataFrame) -> str | None:
    """Return why diagnostics do not support the figure, or None."""
    return (
        "needs a strategy that reports how well its models choose, as mbo does"
        if hits_data(diagnostics).empty
        else None
    )
