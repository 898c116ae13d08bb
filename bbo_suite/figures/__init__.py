"""Figures of a study: each answers one question, says what it shows, and returns the data it drew."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

from ..errors import UserError, did_you_mean
from ..files import disk_errors, replacing
from . import (
    bars,
    convergence,
    critical,
    ecdf,
    exploration,
    gains,
    heat,
    models,
    overhead,
    paper,
    profile,
    style,
    total_time,
)
from .drawing import Drawing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


FIGURES: tuple[Drawing, ...] = (
    convergence.DRAWING,
    bars.DRAWING,
    ecdf.DRAWING,
    total_time.DRAWING,
    overhead.DRAWING,
    profile.DRAWING,
    critical.DRAWING,
    heat.DRAWING,
    gains.DRAWING,
    exploration.DRAWING,
)
"""Every figure that a study may have, in the order in which they are read."""


MODELS = models.DRAWING.name
"""The figure of diagnostics (see `bbo_suite.store.diagnostics.load_diagnostics`), which not every strategy has."""

FORMATS = ("svg", "png")
_UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""So that the same figure is the same bytes."""


def write(
    frame: pd.DataFrame,
    folder: Path,
    diagnostics: pd.DataFrame | None = None,
    names: Sequence[str] = (),
    formats: Sequence[str] = FORMATS,
    for_paper: bool = False,
) -> Iterator[Path]:
    """Draw the figures that a study's frame (see `bbo_suite.load`) supports into the folder; yield the paths.

    Models are drawn where the diagnostics (see `bbo_suite.store.diagnostics.load_diagnostics`) have scores of any.

    Args:
      names: of the figures to draw; all when left out. What is not drawn is said by `left_out`.
      formats: of the files, as matplotlib names them.
      for_paper: draw them as `paper.fit` does, with each caption in a file of text beside them.

    Raises:
      UserError: there is no such figure, nothing to draw, or the folder cannot be written.
    """
    if frame.empty:
        raise UserError(f"there is no evaluation yet to draw in {folder.parent}; run its command again")
    for drawing, data in _wanted(frame, diagnostics, names):
        if drawing.needs(data) is None:
            paths = list(save(drawing.pages(data), folder, formats, for_paper))
            _clear(drawing.name, folder, [*formats, "txt"], paths)
            yield from paths


def left_out(frame: pd.DataFrame, diagnostics: pd.DataFrame | None = None, names: Sequence[str] = ()) -> dict[str, str]:
    """Return why the study does not support some figures, by their names; arguments are those of `write`."""
    reasons = {drawing.name: drawing.needs(data) for drawing, data in _wanted(frame, diagnostics, names)}
    return {name: reason for name, reason in reasons.items() if reason}


def _wanted(
    frame: pd.DataFrame, diagnostics: pd.DataFrame | None, names: Sequence[str]
) -> list[tuple[Drawing, pd.DataFrame]]:
    """Return the figures of these names, or all, and of what each is drawn."""
    drawings = [(drawing, frame) for drawing in FIGURES]
    if diagnostics is not None:
        drawings.append((models.DRAWING, diagnostics))
    known = [*(drawing.name for drawing in FIGURES), MODELS]
    for name in names:
        if name not in known:
            raise UserError(f"there is no figure {name!r}.{did_you_mean(name, known)}")
    return [(drawing, data) for drawing, data in drawings if not names or drawing.name in names]


def _clear(name: str, folder: Path, formats: Sequence[str], drawn: Sequence[Path]) -> None:
    """Delete the pages that were drawn when the study had more or fewer problems."""
    page = re.compile(rf"{name}(-\d+)?\.({'|'.join(formats)})")
    with disk_errors(folder):
        for file in set(folder.glob(f"{name}*")) - set(drawn):
            if page.fullmatch(file.name):
                file.unlink()


def save(
    pages: Iterable[tuple[str, Figure, pd.DataFrame]], folder: Path, formats: Sequence[str], for_paper: bool = False
) -> Iterator[Path]:
    """Write figures, by the stem of their file, into the folder; yield the paths."""
    with mpl.rc_context(style.SETTINGS), warnings.catch_warnings(), disk_errors(folder):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the PNG shows a box; the SVG keeps the text
        folder.mkdir(parents=True, exist_ok=True)
        for stem, figure, _ in pages:
            if for_paper:
                yield _write_text(folder / f"{stem}.txt", paper.fit(figure))
            for suffix in formats:
                file = folder / f"{stem}.{suffix}"
                with replacing(file) as unfinished:
                    figure.savefig(unfinished, format=suffix, metadata=_UNDATED.get(suffix))
                yield file


def _write_text(file: Path, text: str) -> Path:
    with replacing(file) as unfinished:
        unfinished.write_text(f"{text}\n", encoding="utf-8")
    return file
