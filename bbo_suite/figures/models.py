"""How well a strategy's models predict unseen candidates."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import style
from .highlight import legend

_PREFIX = "score/"
_LEAST = -1.0
"""Lower scores are drawn here: a bad model can have any negative score."""


def scores_data(diagnostics: pd.DataFrame) -> pd.DataFrame:
    """Return the lines: problem, strategy, model, evaluation, score (median over the runs), runs.

    Args:
      diagnostics: of a study (see `bbo_suite.store.diagnostics.load_diagnostics`); only scores are used.
    """
    scores = diagnostics[diagnostics["name"].str.startswith(_PREFIX)]
    scores = scores.assign(model=scores["name"].str.removeprefix(_PREFIX))
    keys = ["problem", "strategy", "model", "evaluation"]
    lines = scores.groupby(keys, observed=True)["value"].agg(score="median", runs="size")
    return lines.reset_index()


@mpl.rc_context(style.SETTINGS)
def draw(diagnostics: pd.DataFrame, problems: Sequence[str] | None = None) -> tuple[Figure, pd.DataFrame]:
    """Draw each model's cross-validated score against evaluations, a panel for each problem and strategy.

    Returns the figure and its data (see `scores_data`).
    """
    scores = scores_data(diagnostics)
    looks = style.looks(sorted(set(scores["model"])))
    data = style.chosen(scores, problems)
    panels = list(data.groupby(["problem", "strategy"], observed=True, sort=True))
    figure, axes = style.panels(len(panels), 4.2, 3.0, 1.2)
    for ax, ((problem, strategy), lines) in zip(axes.flat, panels, strict=False):
        _panel(ax, lines, looks)
        style.title(ax, f"{problem}, {strategy}")
    for ax in axes[:, 0]:
        ax.set_ylabel("cross-validated R²")
    legend(figure, looks)
    style.caption(figure, _caption(data))
    return figure, data


def _panel(ax: Axes, lines: pd.DataFrame, looks: dict[str, style.Look]) -> None:
    for model, line in lines.groupby("model", observed=True):
        look = looks[str(model)]
        ax.plot(line["evaluation"], line["score"].clip(_LEAST), color=look.colour, linestyle=look.dash, lw=1.6,
                marker=look.marker, markersize=4)  # fmt: skip
    low = max(_LEAST, min(0.0, lines["score"].min()))
    ax.set(ylim=(low - 0.05, 1.05))
    style.evaluations(ax)


def _caption(data: pd.DataFrame) -> str:
    most = data["runs"].max()
    runs = f"{most} runs, or of those that fitted the model at that point" if most > 1 else "one run"
    cut = f" Scores below {_LEAST:g} are drawn at {_LEAST:g}." if data["score"].min() < _LEAST else ""
    return (
        f"Cross-validated R² of each model each time it is fitted, higher is better; 1 is perfect, 0 is as good as "
        f"predicting the mean; median of {runs}. Evaluations on a log scale.{cut}"
    )


def missing(diagnostics: pd.DataFrame) -> str | None:
    """Return why diagnostics do not support the figure, or None."""
    found = len(scores_data(diagnostics))
    return None if found else "needs a strategy that reports how well its models predict, as mbo does"
