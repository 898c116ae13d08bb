"""A figure without axes: text and boxes at places in inches from the upper left corner."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from . import style
from .interactive import add_tooltip, legal

MARGIN = 0.15
"""Inches at the left and the right edge."""


class Canvas:
    """An empty canvas with a title, of a size in inches.

    Attributes:
      figure: to save.
      ax: the whole canvas.
    """

    def __init__(self, width: float, height: float, title: str) -> None:
        self.figure: Figure = style.NotebookFigure(figsize=(width, height))
        self.ax = self.figure.add_axes((0, 0, 1, 1))
        self.ax.set(xlim=(0, width), ylim=(height, 0))
        self.ax.axis("off")
        self.text(MARGIN, 0.25, title, 12, fontweight="bold")

    def text(self, x: float, y: float, text: str, size: float, **looks: Any) -> Text:  # noqa: ANN401 - of matplotlib
        """Write one line; y is its middle."""
        return self.ax.text(x, y, legal(" ".join(text.splitlines())), fontsize=size, va="center", **looks)

    def box(self, x: float, y: float, width: float, height: float, about: str, **looks: Any) -> None:  # noqa: ANN401
        """Draw a rectangle, and what it shows at the pointer, if anything."""
        patch = Rectangle((x, y), width, height, **looks)
        self.ax.add_patch(patch)
        if about:
            add_tooltip(patch, about)
