"""Figures of a study: each answers one question, says what it shows, and returns the data it drew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def write(frame: pd.DataFrame, folder: Path) -> Iterator[Path]:
    """Draw every figure of a study's frame (see `bbo_suite.load`) into the folder as PNG and SVG; yield the paths."""
    import matplotlib as mpl

    mpl.use("Agg")
    from ..store import disk_errors
    from . import bars, convergence, style

    with mpl.rc_context(style.SETTINGS), disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, draw in (("convergence", convergence.convergence), ("speedup", bars.speedup_bars)):
            figure, _ = draw(frame)
            for suffix in ("svg", "png"):
                path = folder / f"{name}.{suffix}"
                figure.savefig(path)
                yield path
