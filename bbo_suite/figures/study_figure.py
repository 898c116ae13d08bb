"""The figures that a study may have, and their files. Modules that import matplotlib are loaded for a drawing only."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import UserError, did_you_mean
from ..files.writing import disk_errors, replacing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


PANELS, PAGES = 9, 3
"""Panels on a page, and pages of a figure, at most."""


@dataclass(frozen=True)
class StudyFigure:
    """A figure of a study: call it with the study's frame (see `bbo_suite.load`).

    Attributes:
      name: of its file, and on the command line.
      module: of this package. Its `draw(frame)` returns the matplotlib figure and the data that it shows; its
        `missing(frame)`, if it has one, returns why a study does not support the figure, or None.
      question: that the figure answers.
      paged: True if it has a panel for each problem and `draw` takes `problems`, their ids; a study of many problems
        then needs several pages.
      only_results: True if it needs only the last row of each run.
    """

    name: str
    module: str
    question: str
    paged: bool = False
    only_results: bool = False

    def __call__(self, frame: pd.DataFrame, **options: Any) -> tuple[Figure, pd.DataFrame]:  # noqa: ANN401 - of `draw`
        """Return the figure and the data that it shows.

        Args:
          frame: of a study; of one run for `exploration`.
          options: of the module's `draw`, such as `problems=["fusion/resnet50"]` for a figure with a panel for each.

        Raises:
          UserError: the study does not support the figure.
        """
        if reason := "needs an evaluation" if frame.empty else self.missing(frame):
            raise UserError(f"the figure {self.name!r} cannot be drawn: it {reason}")
        return self._loaded().draw(frame, **options)

    def _loaded(self) -> ModuleType:
        return import_module(f".{self.module}", __package__)

    def missing(self, frame: pd.DataFrame) -> str | None:
        """Return what the study lacks for this figure, or None if it can be drawn."""
        check = getattr(self._loaded(), "missing", None)
        return check(frame) if check else None

    def pages(
        self, frame: pd.DataFrame, most: int = PAGES, panels: int = PANELS
    ) -> Iterator[tuple[str, Figure, pd.DataFrame]]:
        """Draw the figure on as many pages as needed; yield the file stem, the figure and its data for each.

        Of problems that do not fit on `most` pages of so many panels, those with the largest gain are drawn.
        """
        problems: Sequence[str] = sorted(frame["problem"].unique())
        if not self.paged or len(problems) <= panels:
            yield (self.name, *self(frame))
            return
        known, problems = len(problems), _largest(frame, problems, most * panels)
        for number, start in enumerate(range(0, len(problems), panels), start=1):
            figure, data = self(frame, problems=problems[start : start + panels])
            if len(problems) < known:
                _say_which(figure, len(problems), known)
            yield f"{self.name}-{number}", figure, data


def _largest(frame: pd.DataFrame, problems: Sequence[str], most: int) -> Sequence[str]:
    """Return the problems with the largest gain, sorted by name; all if there are no more than `most`."""
    if len(problems) <= most or "speedup" not in frame:
        return problems[:most]
    best = frame.groupby("problem", observed=True)["speedup"].max()
    return sorted(map(str, best.sort_values(ascending=False, kind="stable").index[:most]))


def _say_which(figure: Figure, shown: int, known: int) -> None:
    from .style import extend_caption

    which = f"Shown: the {shown} of {known} problems with the largest gain"
    extend_caption(figure, f"{which}; `plot --problem` draws any others.")


FIGURES: dict[str, StudyFigure] = {
    figure.name: figure
    for figure in (
        StudyFigure(
            "convergence", "convergence", "How good is the best candidate after each number of evaluations?", paged=True
        ),
        StudyFigure(
            "speedup", "speedup", "Which strategy is best after the whole budget?", paged=True, only_results=True
        ),
        StudyFigure("ecdf", "ecdf", "How soon are targets reached, over all problems?"),
        StudyFigure("time", "total_time", "How good is the best candidate after a given time?", paged=True),
        StudyFigure("overhead", "overhead", "How much time does a strategy itself need?", only_results=True),
        StudyFigure(
            "profile", "profile", "How often is a strategy within a factor of the best one?", only_results=True
        ),
        StudyFigure(
            "critical", "critical", "Which strategies differ significantly over all problems?", only_results=True
        ),
        StudyFigure("heat", "heat", "On which problems is a strategy good?", only_results=True),
        StudyFigure("gains", "gains", "How large is the gain on each problem?", only_results=True),
        StudyFigure("exploration", "exploration", "What did the run explore?"),
    )
}
"""Every figure of a study's frame by name, in reading order: `FIGURES["heat"](frame)`."""

MODELS = StudyFigure("models", "models", "How well do a strategy's models choose candidates?", paged=True)
"""The figure of a study's diagnostics (see `bbo_suite.store.diagnostics.load_diagnostics`)."""


FORMATS = ("svg", "png")
_UNDATED = {"pdf": {"CreationDate": None}}
"""Metadata without a date, so that the same figure has the same bytes."""


def write(
    frame: pd.DataFrame,
    folder: Path,
    diagnostics: pd.DataFrame | None = None,
    names: Sequence[str] = (),
    formats: Sequence[str] = FORMATS,
    for_paper: bool = False,
) -> Iterator[Path]:
    """Draw the figures that a study's frame (see `bbo_suite.load`) supports into the folder; yield the paths.

    The figure of models is drawn if the diagnostics (see `bbo_suite.store.diagnostics.load_diagnostics`) have hits.

    Args:
      names: of the figures to draw (default: all). `left_out` says which of them are not drawn.
      formats: of the files, as matplotlib names them.
      for_paper: draw figures as `paper.fit` does, and write each caption to a text file.

    Raises:
      UserError: there is no such figure, nothing to draw, or the folder cannot be written.
    """
    if frame.empty:
        raise UserError(f"there is no evaluation yet to draw in {folder.parent}; run its command again")
    for figure, data in _wanted(frame, diagnostics, names):
        if figure.missing(data) is None:
            paths = list(save(figure.pages(data), folder, formats, for_paper))
            _clear(figure.name, folder, [*formats, "txt"], paths)
            yield from paths


def left_out(frame: pd.DataFrame, diagnostics: pd.DataFrame | None = None, names: Sequence[str] = ()) -> dict[str, str]:
    """Return why the study does not support some figures, by their names; arguments are those of `write`."""
    reasons = {figure.name: figure.missing(data) for figure, data in _wanted(frame, diagnostics, names)}
    return {name: reason for name, reason in reasons.items() if reason}


def _wanted(
    frame: pd.DataFrame, diagnostics: pd.DataFrame | None, names: Sequence[str]
) -> list[tuple[StudyFigure, pd.DataFrame]]:
    """Return the figures of these names, or all, each with the frame that it is drawn from."""
    known = [*FIGURES, MODELS.name]
    for name in names:
        if name not in known:
            raise UserError(f"there is no figure {name!r}.{did_you_mean(name, known)}")
    figures = [(figure, frame) for figure in FIGURES.values()]
    if diagnostics is not None:
        figures.append((MODELS, diagnostics))
    return [(figure, data) for figure, data in figures if not names or figure.name in names]


def _clear(name: str, folder: Path, formats: Sequence[str], drawn: Sequence[Path]) -> None:
    """Delete pages that were drawn when the study had more or fewer problems."""
    page = re.compile(rf"{name}(-\d+)?\.({'|'.join(formats)})")
    with disk_errors(folder):
        for file in set(folder.glob(f"{name}*")) - set(drawn):
            if page.fullmatch(file.name):
                file.unlink()


def save(
    pages: Iterable[tuple[str, Figure, pd.DataFrame]], folder: Path, formats: Sequence[str], for_paper: bool = False
) -> Iterator[Path]:
    """Write figures, given with the stems of their files, into the folder; yield the paths."""
    import matplotlib as mpl

    from . import interactive, paper, style

    with mpl.rc_context(style.SETTINGS), warnings.catch_warnings(), disk_errors(folder):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the PNG shows a box; the SVG keeps the text
        folder.mkdir(parents=True, exist_ok=True)
        for stem, figure, _ in pages:
            if for_paper:
                yield _write_text(folder / f"{stem}.txt", paper.fit(figure))
            interactive.settle(figure)
            for suffix in formats:
                file = folder / f"{stem}.{suffix}"
                with replacing(file) as unfinished:
                    if suffix == "svg":
                        unfinished.write_text(interactive.svg(figure), encoding="utf-8")
                    else:
                        figure.savefig(unfinished, format=suffix, metadata=_UNDATED.get(suffix))
                figure.set_layout_engine("none")  # computed once; it takes half of the time
                yield file


def _write_text(file: Path, text: str) -> Path:
    with replacing(file) as unfinished:
        unfinished.write_text(f"{text}\n", encoding="utf-8")
    return file
