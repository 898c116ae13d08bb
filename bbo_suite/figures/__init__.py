"""Figures of a study: each answers one question, says what it shows, and returns the data it drew."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError
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


def write(frame: pd.DataFrame, folder: Path, diagnostics: pd.DataFrame | None = None) -> Iterator[Path]:
    """Draw every figure of a study's frame (see `bbo_suite.load`) into the folder as PNG and SVG; yield the paths.

    Models are drawn where the diagnostics (see `bbo_suite.frames.diagnostics`) have scores of any.
    """
    import matplotlib as mpl

    from ..store import disk_errors

    if frame.empty:
        raise UserError(f"there is no evaluation yet to draw in {folder.parent}; run its command again")
    with mpl.rc_context(style.SETTINGS), warnings.catch_warnings(), disk_errors(folder):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the PNG shows a box; the SVG keeps the text
        folder.mkdir(parents=True, exist_ok=True)
        for drawing in FIGURES:
            if drawing.needs(frame) is None:
                for name, figure, _ in drawing.pages(frame):
                    yield from _save(figure, folder / name)
        if diagnostics is not None and len(models.scores_data(diagnostics)):
            yield from _save(models.model_scores(diagnostics)[0], folder / "models")


def _save(figure: Figure, path: Path) -> Iterator[Path]:
    for suffix in ("svg", "png"):
        file = path.with_suffix(f".{suffix}")
        figure.savefig(file, metadata={"Date": None} if suffix == "svg" else None)
        yield file
