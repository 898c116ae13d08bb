"""The figures of a study, as drawings for a page."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .interactive import Drawing
from .scores import Scores

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..figures.study_figure import StudyFigure


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
      question: that it answers.
      drawings: one for each of its pages.
      missing: why it was not drawn; empty if it was.
    """

    question: str
    drawings: tuple[Drawing, ...] = ()
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


def pictures(frame: pd.DataFrame, only_results: bool = False) -> list[Picture]:
    """Return every figure, drawn or with the reason why this study does not support it.

    Args:
      only_results: the frame has only the last row of each run, so leave out figures that need every evaluation.
    """
    from ..figures import FIGURES

    return [_picture(figure, frame) for figure in FIGURES.values() if figure.only_results or not only_results]


def _picture(figure: StudyFigure, frame: pd.DataFrame) -> Picture:
    if reason := figure.missing(frame):
        return Picture(figure.question, missing=reason)
    return Picture(figure.question, tuple(drawing(*page) for page in _pages(figure, frame)))


def _pages(figure: StudyFigure, frame: pd.DataFrame) -> Iterator[tuple[Figure, str]]:
    yield from ((drawn, f"{name}.") for name, drawn, _ in figure.pages(frame, most=1))  # tables hold all problems


def drawing(figure: Figure, prefix: str) -> Drawing:
    """Return a figure as a drawing for a page; the prefix makes its ids differ from those of other drawings."""
    import matplotlib as mpl

    from ..figures import style
    from ..figures.marks import svg

    with mpl.rc_context(style.SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        return Drawing(svg(figure, prefix))
