"""The figures of a study, embedded in a page as data URIs."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .scores import Scores

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
      question: that it answers.
      sources: a data URI for each of its pages.
      missing: why it was not drawn; empty if it was.
    """

    question: str
    sources: tuple[str, ...] = ()
    missing: str = ""


def compared_rows(frame: pd.DataFrame, scores: Scores) -> pd.DataFrame:
    """Return the rows that the tables use: of the compared runs, up to the cutoff of their problem."""
    cutoffs: dict[object, int] = {
        (run.problem, run.strategy, run.seed): scores.cutoffs[run.problem] for run in scores.compared
    }
    evaluation, kept = frame["evaluation"].to_numpy(), np.zeros(len(frame), bool)
    for run, rows in frame.groupby(["problem", "strategy", "seed"], observed=True, sort=False).indices.items():
        kept[rows] = evaluation[rows] <= cutoffs.get(run, 0)
    return frame if kept.all() else frame[kept]  # without a copy of a large frame


def pictures(frame: pd.DataFrame) -> Iterator[Picture]:
    """Yield every figure, drawn or with the reason why this study does not support it."""
    import matplotlib as mpl

    from ..figures import FIGURES, style

    with mpl.rc_context(style.SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        for figure in FIGURES.values():
            reason = figure.missing(frame)
            if reason is None:
                yield Picture(figure.question, tuple(_source(drawn) for _, drawn, _ in figure.pages(frame)))
            else:
                yield Picture(figure.question, missing=reason)


def _source(figure: Figure) -> str:
    """Return a figure as the data URI of an image, which cannot contain scripts."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
