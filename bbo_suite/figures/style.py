"""One style for all figures: legible at column width, and distinguishable without colour."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray
from PIL import Image

from ..core.level import Level
from ..store.frames import printable
from .interactive import SECONDS

SETTINGS: Any = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,  # 1.0001 is easier to read than 0.0001 with an offset of 1
    "grid.color": "0.9",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # fonts embedded as text, as publishers ask
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.hashsalt": "bbo_suite",
}

FAR = 10
"""Speedups above are drawn on a log scale, on which one of 2 is still told from the default."""
CAPTION = "caption"
"""The id of the text that is a figure's caption."""
_CAPTION_LINE = 0.14
"""Inches of height of a line of it."""

# Okabe and Ito's palette (2008) for colour-blind readers, and four more colours that differ from these as much as these
# differ from each other under simulated colour blindness (Machado et al. 2009); line styles and markers also differ.
_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666", "#999933"),
    *("#000000", "#800000", "#B07AFF", "#4B0092"),
)
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)), (0, (3, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_MORE_MARKERS = ("<", ">", "p", "h")
LINES: dict[Level, tuple[str, str]] = {
    Level.COSTS: ("-", "solid"),
    Level.COMPILATION: ("-.", "dash-dotted"),
    Level.STRUCTURE: ("--", "dashed"),
    Level.PARTS: (":", "dotted"),
}
"""The line style of each level of knowledge, and its name."""


@dataclass(frozen=True)
class Look:
    """How a strategy is drawn in every figure."""

    colour: str
    dash: Any
    marker: str


def looks(strategies: Sequence[str]) -> dict[str, Look]:
    """Return a different look for each strategy; line styles and markers are reused in new pairs beyond eight."""
    n, m = len(_COLOURS), len(_DASHES)
    return {
        name: Look(_COLOURS[i % n], _DASHES[i % m], _MARKERS[(i + i // m) % m]) for i, name in enumerate(strategies)
    }


def looks_by_knowledge(levels: Mapping[str, Level]) -> dict[str, Look]:
    """Return a different look for each strategy, with a line style for each level of knowledge if there are several."""
    if len(set(levels.values())) < 2:
        return looks(list(levels))
    markers = (*_MARKERS, *_MORE_MARKERS)
    return {
        name: Look(_COLOURS[i % len(_COLOURS)], LINES[level][0], markers[i % len(markers)])
        for i, (name, level) in enumerate(levels.items())
    }


def label(strategy: str, level: Level, most: int = 40) -> str:
    """Return a strategy's label; it says if the strategy knows more than costs."""
    return f"{short(strategy, most)} ({level.label})" if level.label else short(strategy, most)


def short(name: str, most: int = 40) -> str:
    """Return a name, with its middle left out if it has more than `most` characters."""
    name = printable(name)
    return name if len(name) <= most else f"{name[: most // 2]}…{name[1 - most // 2 :]}"


class NotebookFigure(Figure):
    """A figure that a notebook shows although pyplot, which opens windows and has global state, is not imported."""

    def _repr_png_(self) -> bytes:
        png = BytesIO()
        self.savefig(png, format="png", bbox_inches="tight")
        return png.getvalue()


def panels(count: int, width: float, height: float, extra: float, sharey: bool = False) -> tuple[Figure, NDArray]:
    """Return a figure with `count` axes in rows of up to three, and these axes by row and column.

    Args:
      width, height: of a panel, in inches.
      extra: inches of height around the panels.
      sharey: give all panels the same vertical axis.
    """
    columns = 2 if count == 4 else max(1, min(3, count, int(16 / width)))
    rows = max(1, math.ceil(count / columns))  # none if every default costs 0
    size = (max(6.4, width * columns), height * rows + extra)
    figure = NotebookFigure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
    for ax in axes.flat[count:]:
        ax.set_visible(False)
    return figure, axes


def chosen(frame: pd.DataFrame, problems: Sequence[str] | None) -> pd.DataFrame:
    """Return the rows of some problems, or of all."""
    if problems is None or set(frame["problem"].unique()) <= set(problems):
        return frame
    return frame[frame["problem"].isin(problems)]


def title(ax: Axes, text: str) -> None:
    """Set a panel's title, on two lines if it is long."""
    wrapped(ax, short(text, 84), 44)
    ax.title.set_fontsize(10)


def wrapped(ax: Axes, text: str, letters: int) -> None:
    """Set a panel's title, wrapped to `letters` per line, and keep the unwrapped text as its label."""
    ax.set_title("\n".join(textwrap.wrap(text, letters)))
    ax.title.set_label(text)


def evaluations(ax: Axes) -> None:
    """Format the x axis for evaluations: log scale, plain numbers."""
    ax.set(xscale="log", xlabel="evaluations")
    _label(ax.xaxis, lambda value: f"{value:,.0f}" if value == round(value) else "")


def plain_numbers(axis: Axis) -> None:
    """Format a log-scaled axis of numbers without powers of ten: `parse_math` is off, so they would stand as code."""
    _label(axis, lambda value: f"{value:,.6g}" if value < 1e6 else f"{value / 1e6:,.6g}M")


def log_speedups(axis: XAxis | YAxis, least: float, most: float, below: float, above: float) -> None:
    """Give an axis of speedups a log scale with plain numbers, from the least to the most and these shares around."""
    low, high = max(least, 1e-99), min(most, 1e99)  # no more is readable
    room = high / low
    limits = low / room**below, high * room**above
    axis.axes.set(**{f"{axis.axis_name}lim": limits})  # first: else matplotlib looks for limits, and overflows
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    _label(axis, lambda value: f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}" if value < 1e7 else f"{value:.0e}")


def seconds(axis: Axis) -> None:
    """Format a log-scaled axis of seconds with units such as ms."""
    axis.set_gid(SECONDS)
    _label(axis, duration)


def _label(axis: Axis, text: Callable[[float], str]) -> None:
    """Label a log-scaled axis at powers of ten; also between them, if there are fewer than two."""

    def between(value: float, _: float) -> str:
        low, high = axis.get_view_interval()
        if math.floor(math.log10(high)) > math.ceil(math.log10(low)):
            return ""
        round_number = f"{value:.3e}"[:5] in ("2.000", "3.000", "5.000")
        return text(value) if round_number or high < 2.5 * low else ""

    least, most = axis.get_view_interval()
    if most > 10 * least:  # each tick costs a millisecond, labelled or not
        axis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
    axis.set_major_formatter(lambda value, _: text(value))
    axis.set_minor_formatter(between)


def duration(value: float) -> str:
    """Return seconds in a suitable unit: `20 µs`, `1,000 s`."""
    units = (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
    unit, size = next(((unit, size) for unit, size in units if value >= 0.999 * size), units[-1])
    number = value / size
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


def ratio(value: float) -> str:
    """Return a default's cost / a candidate's cost as a figure writes it."""
    if value == 0:
        return "all failed"
    return f"{value:.4f}" if value < 10 else f"{value:,.0f}" if 100 <= value < 1e6 else f"{value:.3g}"


def spread(places: Sequence[float], apart: float) -> list[float]:
    """Return rising places on an axis from 0 to 1, moved as little as they must be to lie this far apart."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + apart) if moved else place)
    for i in range(len(moved) - 1, -1, -1):
        above = 1.0 if i == len(moved) - 1 else moved[i + 1] - apart
        moved[i] = min(moved[i], above)
    return moved


def save_with_few_colours(figure: Figure, path: Path, colours: int, **settings: Any) -> None:  # noqa: ANN401
    """Write a figure in at most 256 colours, which look the same and take a third of the bytes.

    Args:
      settings: as `savefig` takes them.
    """
    figure.savefig(path, **settings)
    with Image.open(path) as image:
        image.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)


def caption(figure: Figure, text: str) -> None:
    """Set the caption below the axes, wrapped to the figure's width."""
    text = text.replace(" %", "\u00a0%")  # no line break before a percent sign
    lines = textwrap.wrap(text, int(figure.get_figwidth() * 14.5))
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8.5, color="0.25").set_gid(CAPTION)


def extend_caption(figure: Figure, text: str) -> None:
    """Add a sentence to the caption."""
    caption(figure, f"{figure.get_supxlabel()} {text}".replace("\n", " "))


def take_caption(figure: Figure) -> str:
    """Remove the caption from a figure, with the room that it takes, and return it as one line."""
    found = next((text for text in figure.texts if text.get_gid() == CAPTION), None)
    if found is None:
        return ""
    lines = found.get_text().split("\n")
    found.set(visible=False, in_layout=False)
    width, height = figure.get_size_inches()
    height -= _CAPTION_LINE * len(lines)
    figure.set_size_inches(width, height)
    if not figure.get_layout_engine():
        figure.axes[0].set_ylim(height, 0)  # a canvas is measured in inches
    return " ".join(" ".join(lines).split())
