"""The figures of a study as drawings for a page: packed SVG, and the script that unpacks and explores it."""

from __future__ import annotations

import base64
import html
import re
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from ..scores import Scores, parts_of_runs

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..figures.study_figure import StudyFigure


SCRIPTS = ("panzoom.min.js", "page.js", "drawings.js")
_HEAD = re.compile(r"^.*?<svg .*?>", re.DOTALL)


@dataclass(frozen=True)
class Drawing:
    """An SVG drawing; its ids must differ from those of other drawings in the page.

    Elements with a title show it at the pointer; `bbo_suite.figures.interactive` describes what else they may tell.

    Attributes:
      svg: the drawing, as in a file.
      caption: what is written below it, as text of the page.
    """

    svg: str
    caption: str = ""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, in points."""
        width, height = (re.search(rf'\b{side}="([\d.]+)', self._head) for side in ("width", "height"))
        return (float(width[1]), float(height[1])) if width and height else (640.0, 480.0)

    @property
    def _head(self) -> str:
        found = _HEAD.match(self.svg)
        return found[0] if found else ""

    @property
    def strategies(self) -> list[str]:
        """The strategies that the drawing marks, each once."""
        return list(dict.fromkeys(html.unescape(name) for name in re.findall(r'data-strategy="(.*?)"', self.svg)))

    @property
    def inline(self) -> str:
        """The drawing as it stands in HTML: without a declaration and without namespaces."""
        view = re.search(r'\bviewBox="[-\d. ]*"', self._head)
        width, height = self.size
        head = f'<svg width="{width:g}pt" height="{height:g}pt" {view[0] if view else ""}>'
        return head + self.svg[len(self._head) :]

    @property
    def packed(self) -> str:
        """The drawing as HTML, deflated and in base 64."""
        return base64.b64encode(zlib.compress(self.inline.encode(errors="backslashreplace"), 9)).decode()


def script() -> str:
    """Return the page's script. A library in it, Panzoom, pans and zooms; its licence is beside it."""
    return "\n".join(template(name) for name in SCRIPTS)


def template(name: str) -> str:
    """Return a file of the folder `templates`."""
    return (files("bbo_suite.report") / "templates" / name).read_text(encoding="utf-8")


RESULTS_LEAD = "gains"
"""The figure that a page begins with if only the results of runs are known."""


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
      question: that it answers.
      drawings: one for each of its pages.
      caption: of all drawings, if they do not have captions of their own.
      missing: why it was not drawn; empty if it was.
    """

    question: str
    drawings: tuple[Drawing, ...] = ()
    caption: str = ""
    missing: str = ""


def compared_rows(frame: pd.DataFrame, scores: Scores) -> pd.DataFrame:
    """Return the rows that the tables use: of the compared runs, up to the cutoff of their problem."""
    cutoffs: dict[object, int] = {
        (run.problem, run.strategy, run.seed): scores.cutoffs[run.problem] for run in scores.compared
    }
    evaluation, kept = frame["evaluation"].to_numpy(), np.zeros(len(frame), bool)
    for run, rows in parts_of_runs(frame):
        kept[rows] = evaluation[rows] <= cutoffs.get(run, 0)
    return frame if kept.all() else frame[kept]  # without a copy of a large frame


def pictures(frame: pd.DataFrame, only_results: bool = False) -> list[Picture]:
    """Return every figure, drawn or with the reason why this study does not support it.

    Args:
      only_results: the frame has only the last row of each run, so leave out figures that need every evaluation.
    """
    from ..figures import FIGURES

    figures = [figure for figure in FIGURES.values() if not only_results or _of_results(figure, frame)]
    return [_picture(figure, frame, _FEW if only_results else _MANY) for figure in figures]


_MANY, _FEW = 9, 3
"""Problems that have a drawing of their own; few where the first figure shows the gain on every problem already."""


def _of_results(figure: StudyFigure, frame: pd.DataFrame) -> bool:
    """Return whether a page of results shows a figure here: not if it is the first one already."""
    return figure.only_results and (figure.name != RESULTS_LEAD or figure.missing(frame) is not None)


def _picture(figure: StudyFigure, frame: pd.DataFrame, most: int) -> Picture:
    if reason := figure.missing(frame):
        return Picture(figure.question, missing=reason)
    drawings = [drawing(*page) for page in _pages(figure, frame, most)]
    if len({each.caption for each in drawings}) > 1:
        return Picture(figure.question, tuple(drawings))
    return Picture(figure.question, tuple(replace(each, caption="") for each in drawings), drawings[0].caption)


def _pages(figure: StudyFigure, frame: pd.DataFrame, most: int) -> Iterator[tuple[Figure, str]]:
    """Yield a figure with a drawing of its own for each problem, which the page puts side by side if it is wide."""
    pages = figure.pages(frame, most, panels=1)  # tables hold all problems
    yield from ((drawn, f"{name}.") for name, drawn, _ in pages)


def drawing(figure: Figure, prefix: str) -> Drawing:
    """Return a figure as a drawing for a page, without its caption, which the page writes as text that wraps.

    Args:
      prefix: makes its ids differ from those of other drawings.
    """
    import matplotlib as mpl

    from ..figures import style
    from ..figures.interactive import svg

    with mpl.rc_context(style.SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        return Drawing(caption=style.take_caption(figure), svg=svg(figure, prefix))
