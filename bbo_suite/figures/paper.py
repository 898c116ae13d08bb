"""A figure for a paper: as wide as a column or a page, in at most 8 points, with its caption as separate text."""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text

from . import style

COLUMN, PAGE = 3.4, 7.0
"""Inches: width of a column and of a page in the two-column styles of ACM and IEEE."""
_WIDE, _HIGH = 1.3, 1.1
"""Inches that a panel needs without its labels; if a column leaves less width, the figure takes the page."""
_CELL = 0.24
"""Inches that a cell with a number needs."""
_LINE = 0.11
"""Inches from one slanted label to the next, at least."""
_LETTER = 0.056
"""Inches: approximate width of a letter in 7 points."""


def fit(figure: Figure) -> str:
    """Resize a drawn figure for a paper, remove its caption and return the caption."""
    removed = style.take_caption(figure)
    height = 0.65 * figure.get_figheight()
    for artist in figure.findobj():
        _shrink(artist)
    for ax in figure.axes:
        ax.tick_params(which="both", labelsize=7)
    if not _fits(figure, COLUMN, height):
        _fits(figure, PAGE, height)
    _turn(figure)
    _heighten(figure)
    return removed


def _shrink(artist: Artist) -> None:
    if isinstance(artist, Text):
        artist.set_fontsize(min(8.0, max(6.0, 0.8 * float(artist.get_fontsize()))))
    if isinstance(artist, Line2D):
        artist.set_linewidth(0.8 * artist.get_linewidth())
        artist.set_markersize(0.7 * artist.get_markersize())


def _fits(figure: Figure, width: float, height: float) -> bool:
    """Resize a figure; return True if its panels are wide enough."""
    rows = sum(_above(figure, legend, width) for legend in list(figure.legends))
    figure.set_size_inches(width, height + 0.13 * rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.draw_without_rendering()  # computes the layout
    for ax in figure.axes:
        letters = int(width * ax.get_position().width / _LETTER)
        if title := str(ax.title.get_label()):
            style.wrapped(ax, title, max(12, letters))
            ax.title.set_fontsize(7.5)
    collapsed = any("constrained_layout" in str(warning.message) for warning in caught)
    needed = [max(_WIDE, _CELL * image.get_size()[1]) for ax in figure.axes for image in ax.images]
    return not collapsed and _least(figure, "width") * width >= max(needed, default=_WIDE)


def _turn(figure: Figure) -> None:
    """Make slanted labels vertical if they are so close that they would overlap."""
    for ax in figure.axes:
        close = figure.get_figwidth() * ax.get_position().width / float(np.ptp(ax.get_xlim())) < _LINE
        for name in ax.get_xticklabels():
            if close and name.get_rotation() % 90:
                name.set(rotation=90, verticalalignment="center")
    figure.draw_without_rendering()


def _heighten(figure: Figure) -> None:
    """Make the figure higher if labels leave its panels too little height."""
    width, height = figure.get_size_inches()
    lacking = _HIGH - _least(figure, "height") * height
    if lacking > 0:
        place = figure.axes[0].get_subplotspec()
        rows = place.get_gridspec().nrows if place else 1
        figure.set_size_inches(width, height + rows * lacking)


def _least(figure: Figure, what: str) -> float:
    """Return the smallest width or height of a panel, as a fraction of the figure's."""
    return min(getattr(ax.get_position(), what) for ax in figure.axes if ax.get_visible())


def _above(figure: Figure, legend: Legend, width: float) -> int:
    """Move a legend above the panels, in as many columns as fit; return its number of rows."""
    words, handles = [text.get_text() for text in legend.get_texts()], legend.legend_handles
    columns = max(1, int(width / (_LETTER * max(map(len, words)) + 0.45)))
    legend.remove()
    made = figure.legend([line for line in handles if line], ["x"] * len(words), ncols=columns, fontsize=6.8,
                         handlelength=3, columnspacing=1, loc="outside upper left")  # fmt: skip
    for text, name in zip(made.get_texts(), words, strict=True):
        text.set_text(name)
    return -(-len(words) // columns)
