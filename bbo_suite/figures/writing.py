"""Figures as files: draw what a study supports, say what it does not."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError, did_you_mean
from ..files.writing import disk_errors, replacing
from .study_figure import FIGURES, MODELS, StudyFigure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

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

    The figure of models is drawn if the diagnostics (see `bbo_suite.store.diagnostics.load_diagnostics`) have scores.

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

    from . import marks, paper, style

    with mpl.rc_context(style.SETTINGS), warnings.catch_warnings(), disk_errors(folder):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the PNG shows a box; the SVG keeps the text
        folder.mkdir(parents=True, exist_ok=True)
        for stem, figure, _ in pages:
            if for_paper:
                yield _write_text(folder / f"{stem}.txt", paper.fit(figure))
            marks.settle(figure)
            for suffix in formats:
                file = folder / f"{stem}.{suffix}"
                with replacing(file) as unfinished:
                    if suffix == "svg":
                        unfinished.write_text(marks.svg(figure), encoding="utf-8")
                    else:
                        figure.savefig(unfinished, format=suffix, metadata=_UNDATED.get(suffix))
                figure.set_layout_engine("none")  # computed once; it takes half of the time
                yield file


def _write_text(file: Path, text: str) -> Path:
    with replacing(file) as unfinished:
        unfinished.write_text(f"{text}\n", encoding="utf-8")
    return file
