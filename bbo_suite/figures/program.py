"""A program before and after: the cost of every kernel, and the kernels that became others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from ..core.program import Kernel, Program
from ..store.frames import printable
from . import style
from .kernel_boxes import LEFT, Column, Writer
from .regions import Region, alike, regions
from .sheet import MARGIN, Sheet

MOST = 6
"""Regions that are drawn, at most."""
LEAST = 1e-4
"""The share of the whole cost that a drawn region gains or costs in all its places, at least."""
_COLOURS = ("#CC79A7", "#E69F00", "#56B4E9", "#4B0092", "#999933", "#800000")
_WIDTH, _PANEL, _COLUMN = 11.0, 5.45, 2.6
_TOP, _HEAD, _BETWEEN, _CAPTION = 1.7, 0.5, 0.12, 0.95
_STRIP, _BEFORE_STRIP, _AFTER_STRIP = 0.26, 0.55, 0.85
"""Inches: widths of the figure, a panel and a column; heights above panels, above a column, between panels and of the
caption; the height of a strip, and the widths of the texts beside it."""
_TOLD = 5
"""Kernels of a strip that are named at the pointer, at most."""

Group = Sequence[Region]
"""Regions that are alike."""


def program_data(before: Program, after: Program) -> pd.DataFrame:
    """Return the kernels of changed regions: region, places, side, kernel, cost, instructions.

    Regions are numbered by falling gain; `places` is in how many places of the program the same change was made.
    """
    rows = []
    for number, group in enumerate(alike(before, after, regions(before, after)), start=1):
        for side, program, numbers in (("before", before, group[0].before), ("after", after, group[0].after)):
            kernels = [program.kernels[i] for i in numbers]
            rows += [(number, len(group), side, printable(k.name), k.cost, len(k.members)) for k in kernels]
    return pd.DataFrame(rows, columns=["region", "places", "side", "kernel", "cost", "instructions"])


@mpl.rc_context(style.SETTINGS)
def draw(before: Program, after: Program, unit: str, title: str, note: str = "") -> tuple[Figure, pd.DataFrame]:
    """Draw all kernels as two strips, and below them the regions with the largest gains, kernel by kernel.

    Args:
      before, after: the program by default, and as the candidate compiles it.
      unit: of the costs.
      title: of the figure.
      note: what the caption says first.

    Returns:
      The figure and its data (see `program_data`).
    """
    groups = alike(before, after, regions(before, after))
    whole = sum(kernel.cost for kernel in before.kernels)
    drawn = [group for group in groups[:MOST] if len(group) * abs(group[0].gain) >= LEAST * whole] or groups[:1]
    panels = [_columns(before, after, group[0]) for group in drawn]
    places, bottom = _places([_HEAD + max(column.height for column in pair) for pair in panels])
    sheet = Sheet(_WIDTH, bottom + _CAPTION, title)
    write: Writer = style.duration if unit == "seconds" else "{:,.4g}".format
    _strips(sheet, (before, after), drawn, write)
    for i, (group, columns) in enumerate(zip(drawn, panels, strict=True)):
        _head(sheet, i, group, whole, places[i], write)
        _panel(sheet, columns, places[i], write)
    style.caption(sheet.figure, f"{note} {_how_to_read(drawn, groups, whole)}".strip())
    return sheet.figure, program_data(before, after)


def _places(heights: Sequence[float]) -> tuple[list[tuple[float, float]], float]:
    """Return the upper left corner of each panel, in two stacks, and the lower end of the longer stack."""
    places, ends = [], [_TOP, _TOP]
    for height in heights:
        stack = ends.index(min(ends))
        places.append((MARGIN + stack * _PANEL, ends[stack]))
        ends[stack] += height + _BETWEEN
    return places, max(ends)


def _columns(before: Program, after: Program, region: Region) -> tuple[Column, Column]:
    return Column(before, region.before, after, False), Column(after, region.after, before, True)


def _head(sheet: Sheet, i: int, group: Group, whole: float, place: tuple[float, float], write: Writer) -> None:
    """Write what a region gains."""
    x, y = place
    gain, many = group[0].gain, len(group)
    places = f", in {many} places: {write(many * gain)} ({_share(many * gain, whole)})" if many > 1 else ""
    sheet.box(x, y + 0.06, 0.2, 0.2, "", facecolor=_COLOURS[i], lw=0)
    sheet.text(x + 0.1, y + 0.16, f"{i + 1}", 8, color="white", fontweight="bold", ha="center")
    words = f"{'gains' if gain >= 0 else 'costs'} {write(abs(gain))} ({_share(abs(gain), whole)} of the whole){places}"
    sheet.text(x + 0.28, y + 0.16, words, 8.5)


def _panel(sheet: Sheet, columns: Sequence[Column], place: tuple[float, float], write: Writer) -> None:
    longest = max(cost for column in columns for cost in column.costs)
    for number, column in enumerate(columns):
        x, y = place[0] + number * _COLUMN, place[1]
        word = "after" if column.after else "before"
        sheet.text(x + LEFT, y + 0.4, f"{word}: {write(sum(column.costs))}", 7.5, color="0.25")
        column.draw(sheet, x, y + _HEAD, longest, write)


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole else 0:.2f} %"


def _strips(sheet: Sheet, programs: Sequence[Program], groups: Sequence[Group], write: Writer) -> None:
    """Draw each program as a strip: a kernel is as wide as it takes long."""
    most = max(sum(kernel.cost for kernel in program.kernels) for program in programs)
    scale = (_WIDTH - 2 * MARGIN - _BEFORE_STRIP - _AFTER_STRIP) / most if most else 0.0
    for row, (program, word) in enumerate(zip(programs, ("before", "after"), strict=True)):
        numbers = {i: n for n, group in enumerate(groups) for r in group for i in (r.after if row else r.before)}
        x, y = MARGIN + _BEFORE_STRIP, 0.6 + row * 0.45
        sheet.text(MARGIN, y + _STRIP / 2, word, 9)
        for number, pairs in groupby(enumerate(program.kernels), key=lambda pair: numbers.get(pair[0])):
            run = [kernel for _, kernel in pairs]
            width, colour = scale * sum(kernel.cost for kernel in run), "0.82" if number is None else _COLOURS[number]
            sheet.box(x, y, width, _STRIP, _about_run(run, number, write), facecolor=colour, edgecolor="white", lw=0.15)
            x += width
        sheet.text(x + 0.08, y + _STRIP / 2, write(sum(kernel.cost for kernel in program.kernels)), 9)


def _about_run(run: Sequence[Kernel], number: int | None, write: Writer) -> str:
    """Return what is shown at the pointer of neighbouring kernels: how many there are, and which take longest."""
    longest = sorted(run, key=lambda kernel: -kernel.cost)[:_TOLD]
    what = "not drawn below" if number is None else f"region {number + 1}"
    head = f"{len(run)} kernel{'' if len(run) == 1 else 's'} ({what}): {write(sum(kernel.cost for kernel in run))}"
    return "\n".join([head, *(f"{kernel.name}: {write(kernel.cost)}" for kernel in longest)])


def _how_to_read(drawn: Sequence[Group], groups: Sequence[Group], whole: float) -> str:
    if not groups:
        return "No kernel differs from those of the default."
    rest = [region for group in groups[len(drawn) :] for region in group]
    gain, many = _share(sum(region.gain for region in rest), whole), "region" if len(rest) == 1 else "regions"
    more = f" Not drawn: {len(rest):,} {many} with a gain of {gain}." if rest else ""
    return (
        "Strips: all kernels in the order in which they run, as wide as they take long; those of a numbered region "
        "have its colour. Below: the regions with the largest gains, the default on the left. A box is a kernel, "
        "filled by its share of the region's longest; an arrow is data through memory. Orange: a kernel that is gone, "
        "because others compute it; green: a new one; blue: both have it, with the instructions that moved out (−) or "
        f"in (+).{more}"
    )
