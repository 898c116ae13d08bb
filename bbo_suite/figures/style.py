"""One look for all figures: legible at column width, and told apart without colour."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS: Any = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "bbo_suite",
}

# Okabe and Ito's palette (2008), told apart by colour-blind eyes; lines and hatches carry the same in grey.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)), (0, (3, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = ("", "//", "\\\\", "..", "xx", "--", "++", "oo")


@dataclass(frozen=True)
class Look:
    """How one strategy is drawn in every figure."""

    colour: str
    dash: Any
    marker: str
    hatch: str


def looks(strategies: Sequence[str]) -> dict[str, Look]:
    """Return a look for each strategy; beyond eight, colours and lines combine anew."""
    n = len(_COLOURS)
    return {
        name: Look(_COLOURS[i % n], _DASHES[(i + i // n) % n], _MARKERS[(i + i // n) % n], _HATCHES[(i + i // n) % n])
        for i, name in enumerate(strategies)
    }


def label(strategy: str, uses_structure: bool) -> str:
    """Return the legend's words; a strategy that sees the problem's structure is marked everywhere."""
    return f"{strategy} (uses structure)" if uses_structure else strategy


def caption(figure: Figure, text: str) -> None:
    """Write the caption under the axes, wrapped to the figure's width, and make room for it."""
    width = int(figure.get_figwidth() * 14.5)
    lines = textwrap.wrap(text, width)
    height = 0.19 * len(lines) + 0.1
    room = height / figure.get_figheight()
    figure.set_layout_engine("constrained", rect=(0, room, 1, 1 - room))
    figure.text(0.01, 0.012, "\n".join(lines), fontsize=8.5, va="bottom", ha="left", color="0.25")
