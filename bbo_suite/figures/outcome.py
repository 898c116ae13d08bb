"""What was found for a problem: its program before and after, or a table of the changes where no program is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from ..core.program import Change
from ..core.quantities import effect
from ..errors import UserError, error_boundary
from ..store.frames import printable
from ..verify.minimal import gain_text
from . import style
from .program import MARGIN, Canvas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..verify.best import Best


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
def draw_changes(changes: Sequence[tuple[Change, float]], title: str, note: str = "") -> tuple[Figure, pd.DataFrame]:
    """Draw a table of changes with their gains as bars; return the figure and its data (`changes_data`).

    Args:
      changes: with the gain of each: how much the cost rises without it, as a share of the cost; inf if it fails.
      title: of the figure.
      note: what the caption says first.
    """
    data, shown = changes_data(changes), changes[:MOST]
    canvas = Canvas(_WIDTH, _TOP + _LINE * max(1, len(shown)) + _CAPTION, title)
    for x, word, side in ((MARGIN, "change", "left"), (_VALUE, "default → value", "left"), (_GAIN, "gain", "right")):
        canvas.text(x, _TOP - 0.2, word, 8.5, color="0.35", ha=side)
    largest = max((gain for _, gain in changes if math.isfinite(gain)), default=0.0)
    for row, (change, gain) in enumerate(shown):
        share = gain / largest if largest and math.isfinite(gain) else 1.0
        _line(canvas, change, gain, _TOP + _LINE * row, share)
    style.caption(canvas.figure, f"{note} {_how_to_read(len(changes) - len(shown))}".strip())
    return canvas.figure, data


def _line(canvas: Canvas, change: Change, gain: float, y: float, share: float) -> None:
    decided, middle = f"{change.default} → {change.value}", y + _LINE / 2
    about = f"{change.name}: {decided}\ngain: {gain_text(gain)}"
    colour = "#0072B2" if math.isfinite(gain) else "#D55E00"
    canvas.box(_BARS, y + 0.03, _BAR * share, _LINE - 0.06, about, facecolor=colour, alpha=0.6, lw=0)
    canvas.text(MARGIN, middle, style.short(change.name, _LETTERS), 8)
    canvas.text(_VALUE, middle, style.short(decided, _LETTERS), 8)
    canvas.text(_GAIN, middle, gain_text(gain), 8, ha="right")


def _how_to_read(hidden: int) -> str:
    rest = f" Not drawn: {hidden:,} changes with smaller gains." if hidden else ""
    return (
        "Gain: how much the cost rises if only this change returns to the default. Changes that depend on each other "
        f"gain less together than their sum. Fails: the candidate fails without the change.{rest}"
    )


def draw(best: Best) -> tuple[Figure, pd.DataFrame]:
    """Draw the minimal candidate of a problem (see `bbo_suite.verify.best`); return the figure and its data.

    Raises:
      UserError: no candidate succeeded, or the problem is not available.
    """
    if best.minimal is None or best.minimal_again is None or best.loaded is None or best.run is None:
        raise UserError(f"{best.problem} cannot be drawn: {best.why_not or 'no candidate succeeded'}")
    problem, unit = best.loaded, best.loaded.unit
    with error_boundary(f"problem {problem.id}", "picture"):
        pair = [problem.picture(config) for config in (problem.default_row(), best.minimal.config)]
    costs = f"{_cost(best.run.head['default'], unit)} → {_cost(best.cost, unit)}"
    title = f"{style.short(problem.id, 60)}: {costs}, {effect(best.speedup, unit)}, by {best.run.identity.strategy}"
    note = f"{best.needed_text()}."
    if pair[0] is None or pair[1] is None:
        return draw_changes(best.changes(), title, note)
    from . import program

    return program.draw(pair[0], pair[1], unit, title, note)


def _cost(cost: float, unit: str) -> str:
    return style.duration(cost) if unit == "seconds" else f"{cost:,.6g} {unit}"
