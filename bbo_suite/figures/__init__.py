"""Figures of a study: each answers one question, says what it shows, and returns the data it drew."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def write(frame: pd.DataFrame, folder: Path) -> Iterator[Path]:
    """Draw every figure of a study's frame (see `bbo_suite.load`) into the folder as PNG and SVG; yield the paths."""
    import matplotlib as mpl

    from ..store import disk_errors
    from . import bars, convergence, style

    if frame.empty:
        raise UserError(f"there is no evaluation yet to draw in {folder.parent}; run its command again")
    with mpl.rc_context(style.SETTINGS), warnings.catch_warnings(), disk_errors(folder):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the PNG shows a box; the SVG keeps the text
        folder.mkdir(parents=True, exist_ok=True)
        for name, draw in (("convergence", convergence.convergence), ("speedup", bars.speedup_bars)):
            figure, _ = draw(frame)
            for suffix in ("svg", "png"):
                path = folder / f"{name}.{suffix}"
                figure.savefig(path, metadata={"Date": None} if suffix == "svg" else None)
                yield path
