"""How well do a strategy's models predict what they have not seen?"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import style
from .cast import legend
from .drawing import Drawing

_PREFIX = "score/"
_LEAST = -1.0
"""A model that fails can score any negative number."""


def scores_data(diagnostics: pd.DataFrame) -> pd.DataFrame:
    """Return the lines: problem, strategy, model, evaluation, score (median over the runs), runs.

    Args:
      diagnostics: as `bbo_suite.store.diagnostics.load_diagnostics` gives it; numbers other than scores are left out.
    """
    scores = diagnostics[diagnostics["name"].str.startswith(_PREFIX)]
    scores = scores.assign(model=scores["name"].str.removeprefix(_PREFIX))
    keys = ["problem", "strategy", "model", "evaluation"]
    lines = scores.groupby(keys, observed=True)["value"].agg(score="median", runs="size")
    return lines.reset_index()


@mpl.rc_context(style.SETTINGS)
def model_scores(diagnostics: pd.DataFrame, problems: Sequence[str] | None = None) -> tuple[Figure, pd.DataFrame]:
    """Draw each model's cross-validated score against evaluations, a panel for each problem and strategy.

    Returns the figure and the data it drew (see `scores_data`).
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
    runs = f"{data['runs'].max()} runs, or of those that fitted then" if data["runs"].max() > 1 else "one run"
    cut = f" Drawn at {_LEAST:g}: all that is below." if data["score"].min() < _LEAST else ""
    return (
        f"Cross-validated R² of each model whenever it is fitted, higher is better; 1 is perfect, 0 a constant; median "
        f"of {runs}. Evaluations on a log scale.{cut}"
    )


def _needs(diagnostics: pd.DataFrame) -> str | None:
    told = len(scores_data(diagnostics))
    return None if told else "needs a strategy that says how well its models predict, as mbo does"


DRAWING = Drawing(
    "models", "How well do a strategy's models predict what they have not seen?", model_scores, _needs, paged=True
)
