"""How well a strategy's models predict unseen candidates, and what that is worth to the search."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import style
from .highlight import legend

_PREFIX, _HITS = "score/", "hits/"
HIT_RATE = "hit rate"
_LEAST = -1.0
"""Lower scores are drawn here: a bad model can have any negative score."""


def scores_data(diagnostics: pd.DataFrame) -> pd.DataFrame:
    """Return the lines: problem, strategy, model, evaluation, score (median over the runs), runs.

    The model `HIT_RATE` stands for the choices of all models: its score is their hit rate.

    Args:
      diagnostics: of a study (see `bbo_suite.store.diagnostics.load_diagnostics`); only scores and hit rates are used.
    """
    scores = diagnostics[diagnostics["name"].str.startswith((_PREFIX, _HITS))]
    names = scores["name"].str
    scores = scores.assign(model=np.where(names.startswith(_HITS), HIT_RATE, names.removeprefix(_PREFIX)))
    keys = ["problem", "strategy", "model", "evaluation"]
    lines = scores.groupby(keys, observed=True)["value"].agg(score="median", runs="size")
    return lines.reset_index()


@mpl.rc_context(style.SETTINGS)
def draw(diagnostics: pd.DataFrame, problems: Sequence[str] | None = None) -> tuple[Figure, pd.DataFrame]:
    """Draw each model's cross-validated score, and the hit rate, a panel for each problem and strategy.

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
        rates = model == HIT_RATE
        place = _right(ax) if rates else ax
        look, scores = looks[str(model)], line["score"] if rates else line["score"].clip(_LEAST)
        place.plot(line["evaluation"], scores, color=look.colour, linestyle=look.dash, lw=1.6, marker=look.marker,
                   markersize=4)  # fmt: skip
        if rates:
            place.set_ylim(0, max(2.0, 1.05 * scores.max()))
    scores = lines.loc[lines["model"] != HIT_RATE, "score"]
    low = max(_LEAST, min(0.0, scores.min() if len(scores) else 0.0))
    ax.set(ylim=(low - 0.05, 1.05))
    style.evaluations(ax)


def _right(ax: Axes) -> Axes:
    """Return a second axis on the right, for the hit rate, with a line where models know nothing."""
    right = ax.twinx()
    right.set_ylabel("hit rate / base rate")
    right.axhline(1, color="0.6", lw=0.8, zorder=0)
    return right


def _caption(data: pd.DataFrame) -> str:
    scores = data[data["model"] != HIT_RATE]
    most = data["runs"].max()
    runs = f"{most} runs, or of those that fitted the model at that point" if most > 1 else "one run"
    cut = f" Scores below {_LEAST:g} are drawn at {_LEAST:g}." if scores["score"].min() < _LEAST else ""
    hits = (
        f" The {HIT_RATE}, on the right, is the improving share of the changes that the models chose, over that of "
        "random changes: 1 is as good as chance."
    )
    return (
        f"Cross-validated R² of each model each time it is fitted, higher is better; 1 is perfect, 0 is as good as "
        f"predicting the mean; median of {runs}. Evaluations on a log scale.{cut}"
        f"{hits if len(scores) < len(data) else ''}"
    )


def missing(diagnostics: pd.DataFrame) -> str | None:
    """Return why diagnostics do not support the figure, or None."""
    found = len(scores_data(diagnostics))
    return None if found else "needs a strategy that reports how well its models predict, as mbo does"
