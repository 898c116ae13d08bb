"""`plot`."""

from __future__ import annotations

from pathlib import Path

from .app import Results, app, draw


@app.command()
def plot(study: str, results: Results = Path("results")) -> None:
    """Draw a study's figures as PNG and SVG and print their paths."""
    draw(study, results)
