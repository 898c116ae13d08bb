"""The changes of a candidate as a table: what was decided, and what each decision gains."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from ..core.program import Change
from ..store.frames import printable
from ..verify.minimal import gain_text
from . import style
from .sheet import MARGIN, Sheet

MOST = 40
"""Changes that are drawn, at most."""
_WIDTH, _LINE, _TOP, _CAPTION, _BAR = 10.0, 0.22, 0.85, 0.75, 2.1
_VALUE, _GAIN, _BARS = 3.6, 7.65, 7.75
"""Inches: the figure, a line, what stands above and below the lines, the longest bar; where columns start or end."""
_LETTERS = 54


def changes_data(changes: Sequence[tuple[Change, float]]) -> pd.DataFrame:
    """Return the changes: change, default, value, gain."""
    rows = [(*map(printable, (c.name, c.default, c.value)), gain) for c, gain in changes]
    return pd.DataFrame(rows, columns=["change", "default", "value", "gain"])


@mpl.rc_context(style.SETTINGS)
def draw(changes: Sequence[tuple[Change, float]], title: str, note: str = "") -> tuple[Figure, pd.DataFrame]:
    """Draw a table of changes with their gains as bars; return the figure and its data (`changes_data`).

    Args:
      changes: with the gain of each: how much the cost rises without it, as a share of the cost; inf if it fails.
      title: of the figure.
      note: what the caption says first.
    """
    data, shown = changes_data(changes), changes[:MOST]
    sheet = Sheet(_WIDTH, _TOP + _LINE * max(1, len(shown)) + _CAPTION, title)
    for x, word, side in ((MARGIN, "change", "left"), (_VALUE, "default → value", "left"), (_GAIN, "gain", "right")):
        sheet.text(x, _TOP - 0.2, word, 8.5, color="0.35", ha=side)
    largest = max((gain for _, gain in changes if math.isfinite(gain)), default=0.0)
    for row, (change, gain) in enumerate(shown):
        share = gain / largest if largest and math.isfinite(gain) else 1.0
        _line(sheet, change, gain, _TOP + _LINE * row, share)
    style.caption(sheet.figure, f"{note} {_how_to_read(len(changes) - len(shown))}".strip())
    return sheet.figure, data


def _line(sheet: Sheet, change: Change, gain: float, y: float, share: float) -> None:
    decided, middle = f"{change.default} → {change.value}", y + _LINE / 2
    about = f"{change.name}: {decided}\ngain: {gain_text(gain)}"
    colour = "#0072B2" if math.isfinite(gain) else "#D55E00"
    sheet.box(_BARS, y + 0.03, _BAR * share, _LINE - 0.06, about, facecolor=colour, alpha=0.6, lw=0)
    sheet.text(MARGIN, middle, style.short(change.name, _LETTERS), 8)
    sheet.text(_VALUE, middle, style.short(decided, _LETTERS), 8)
    sheet.text(_GAIN, middle, gain_text(gain), 8, ha="right")


def _how_to_read(hidden: int) -> str:
    rest = f" Not drawn: {hidden:,} changes with smaller gains." if hidden else ""
    return (
        "Gain: how much the cost rises if only this change returns to the default. Changes that depend on each other "
        f"gain less together than their sum. Fails: the candidate fails without the change.{rest}"
    )
