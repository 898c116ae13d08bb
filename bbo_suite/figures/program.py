"""A program before and after: the cost of every kernel, and the kernels that became others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.text import Text
from scipy.cluster.hierarchy import DisjointSet

from ..core.program import Kernel, Program, Words
from ..core.quantities import plural, with_noun
from ..store.frames import printable
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


_SAME = 1e-6
"""The largest relative difference in cost that is not shown."""
_BOX, LINE, LEFT = 2.1, 0.135, 0.27
"""Inches: of a box, from one line of text to the next, and left of the boxes for arrows."""
_SPACE, _BESIDE, _PADDING, _BULGE = 0.09, 0.16, 0.04, 0.22
"""Inches: between two boxes, for a line about neighbours, between a box and its text, and left of a box for arrows."""
_SHOWN, _LINES, _LETTERS, _INSTRUCTIONS = 7, 3, 37, 40
"""Kernels of a column, lines of a box, letters of a line, and instructions named at the pointer, at most."""
GONE, NEW, CHANGED = "#D55E00", "#009E73", "#0072B2"
Writer = Callable[[float], str]
"""Writes a cost."""
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


@dataclass(frozen=True)
class Region:
    """Kernels that became others.

    Attributes:
      before, after: the kernels' numbers in the two programs, ascending.
      gain: the cost before minus the cost after, in the problem's unit.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    gain: float


def regions(before: Program, after: Program) -> list[Region]:
    """Return the regions in which two programs differ.

    A kernel belongs to the region of the kernel of the same name. If there is none, it belongs to those that compute
    the instruction that it stores.
    """
    old, new = ({kernel.name: i for i, kernel in enumerate(program.kernels)} for program in (before, after))
    joined = DisjointSet(name for name in old | new if _differs(before, after, old.get(name), new.get(name)))
    for here, there, program in ((old, new, after), (new, old, before)):
        computed = _computed(program)
        for name in here.keys() - there.keys():
            for kernel in filter(joined.__contains__, computed[name]):
                joined.merge(name, kernel)
    return [_region(before, after, sorted(old[n] for n in names if n in old), sorted(new[n] for n in names if n in new))
            for names in joined.subsets()]  # fmt: skip


def alike(before: Program, after: Program, found: list[Region]) -> list[list[Region]]:
    """Return the regions in groups with the same costs and sizes, such as one in each layer; the largest gain first."""
    groups: dict[tuple, list[Region]] = defaultdict(list)
    for region in found:
        sides = ((before, region.before), (after, region.after))
        groups[tuple(tuple(_form(program.kernels[i]) for i in side) for program, side in sides)].append(region)
    ordered = [sorted(group, key=lambda region: region.before or region.after) for group in groups.values()]
    return sorted(ordered, key=lambda group: (-len(group) * group[0].gain, group[0].before, group[0].after))


def _form(kernel: Kernel) -> tuple[str, int]:
    return f"{kernel.cost:.4g}", len(kernel.members)


def _differs(before: Program, after: Program, old: int | None, new: int | None) -> bool:
    if old is None or new is None:
        return True
    a, b = before.kernels[old], after.kernels[new]
    return set(a.members) != set(b.members) or dict(a.settings) != dict(b.settings) or _apart(a.cost, b.cost)


def _apart(first: float, second: float) -> bool:
    return abs(first - second) > _SAME * max(abs(first), abs(second))


def _computed(program: Program) -> dict[str, list[str]]:
    """Return the names of the kernels that compute each instruction."""
    kernels: dict[str, list[str]] = defaultdict(list)
    for kernel in program.kernels:
        for member in kernel.members:
            kernels[member].append(kernel.name)
    return kernels


def _region(before: Program, after: Program, old: list[int], new: list[int]) -> Region:
    gain = sum(before.kernels[i].cost for i in old) - sum(after.kernels[i].cost for i in new)
    return Region(tuple(old), tuple(new), gain)


def neighbours(program: Program, inside: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the kernels outside that some kernels read, and those that read them."""
    chosen = set(inside)
    pairs = [(a, b) for a, b in program.edges.tolist() if (a in chosen) != (b in chosen)]
    return _unique(a for a, b in pairs if b in chosen), _unique(b for a, b in pairs if a in chosen)


def _unique(numbers: Iterator[int]) -> list[int]:
    return sorted(set(numbers))


@dataclass(frozen=True)
class Column:
    """One side of a region: kernels of a program before or after.

    Attributes:
      program: the program of this side.
      kernels: their numbers.
      other: the program of the other side.
      after: True if `program` is the one after.
    """

    program: Program
    kernels: Sequence[int]
    other: Program
    after: bool

    @cached_property
    def shown(self) -> list[int]:
        """The kernels that are drawn: those that take longest."""
        longest = sorted(self.kernels, key=lambda i: -self.program.kernels[i].cost)
        return sorted(longest[:_SHOWN])

    @property
    def costs(self) -> list[float]:
        """Those of the kernels."""
        return [self.program.kernels[i].cost for i in self.kernels]

    @property
    def height(self) -> float:
        """Inches of the column."""
        boxes = sum(self._box_height(self.program.kernels[i]) + _SPACE for i in self.shown)
        return 2 * _BESIDE + boxes + (LINE if len(self.shown) < len(self.kernels) else 0)

    def draw(self, canvas: Canvas, x: float, y: float, longest: float, write: Writer) -> None:
        """Draw the column with its upper left corner at (x, y); a box of cost `longest` is filled to its width."""
        read, readers = neighbours(self.program, self.kernels)
        self._name(canvas, self.program.words.incoming, read, x, y)
        top, places = y + _BESIDE, {}
        for i in self.shown:
            height = self._box_height(self.program.kernels[i])
            self._box(canvas, self.program.kernels[i], x + LEFT, top, longest, write)
            places[i] = (x + LEFT, top + height / 2)
            top += height + _SPACE
        if hidden := sorted(set(self.kernels) - set(self.shown)):
            rest = write(sum(self.program.kernels[i].cost for i in hidden))
            canvas.text(x + LEFT, top + LINE / 2, f"… {len(hidden)} more, {rest}", 6.5, color="0.35")
            top += LINE
        self._arrows(canvas, places)
        self._name(canvas, self.program.words.outgoing, readers, x, top)

    def _twin(self, kernel: Kernel) -> Kernel | None:
        return next((each for each in self.other.kernels if each.name == kernel.name), None)

    def _lines(self, kernel: Kernel) -> list[str]:
        """Return what is chosen for a kernel and what it computes on this side only."""
        twin, sign = self._twin(kernel), "+" if self.after else "−"
        known = set(twin.members) if twin else {kernel.name}
        chosen = kernel.settings.items() - twin.settings.items() if twin else set()
        lines = [f"{name}: {text}" for name, text in sorted(chosen)]
        lines += [f"{sign} {name}" for name in kernel.members if name not in known]
        return lines if len(lines) <= _LINES else [*lines[: _LINES - 1], f"… {len(lines) - _LINES + 1} more"]

    def _box_height(self, kernel: Kernel) -> float:
        return LINE * (1 + len(self._lines(kernel))) + 2 * _PADDING

    def _box(self, canvas: Canvas, kernel: Kernel, x: float, y: float, longest: float, write: Writer) -> None:
        height, text = self._box_height(kernel), about(kernel, write, self.program.words.member)
        colour = CHANGED if self._twin(kernel) else NEW if self.after else GONE
        filled = _BOX * kernel.cost / longest if longest else 0.0
        canvas.box(x, y, _BOX, height, text, facecolor="0.94", edgecolor=colour, lw=1.1)
        canvas.box(x, y, filled, height, text, facecolor=colour, alpha=0.28, lw=0)
        middle = y + _PADDING + LINE / 2
        canvas.text(x + 0.05, middle, style.short(kernel.name, _LETTERS - 14), 7, fontweight="bold")
        canvas.text(x + _BOX - 0.05, middle, write(kernel.cost), 7, ha="right")
        for number, line in enumerate(self._lines(kernel), start=1):
            canvas.text(x + 0.08, middle + LINE * number, style.short(line, _LETTERS), 6.5, color="0.25")

    def _arrows(self, canvas: Canvas, places: dict[int, tuple[float, float]]) -> None:
        for a, b in self.program.edges.tolist():
            if a in places and b in places:
                bend = min(0.55, 2 * _BULGE / (places[b][1] - places[a][1]))
                canvas.ax.add_patch(
                    FancyArrowPatch(
                        places[a], places[b], connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>",
                        mutation_scale=6, lw=0.7, color="0.35", shrinkA=0, shrinkB=0,
                    )
                )  # fmt: skip

    def _name(self, canvas: Canvas, word: str, kernels: Sequence[int], x: float, y: float) -> None:
        """Name the kernels outside that these read, or that read them, in one line."""
        names = [self.program.kernels[i].name for i in kernels]
        if names:
            more = f" and {len(names) - 2} more" if len(names) > 2 else ""
            text = f"{word} {', '.join(style.short(name, 12) for name in names[:2])}{more}"
            line = canvas.text(x + LEFT, y + _BESIDE / 2 - 0.01, text, 6.2, color="0.45")
            add_tooltip(line, "\n".join([word, *names[:_INSTRUCTIONS]]))


def about(kernel: Kernel, write: Writer, member: str) -> str:
    """Return what is shown of a kernel at the pointer: its cost, what is chosen for it, and what it is made of."""
    many = len(kernel.members)
    head = f"{kernel.name}: {write(kernel.cost)}, {with_noun(many, member)}"
    settings = [f"{name}: {text}" for name, text in kernel.settings.items()]
    more = [f"… {many - _INSTRUCTIONS} more"] if many > _INSTRUCTIONS else []
    return "\n".join([head, *settings, *kernel.members[:_INSTRUCTIONS], *more])


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
    canvas = Canvas(_WIDTH, bottom + _CAPTION, title)
    write: Writer = style.duration if unit == "seconds" else "{:,.4g}".format
    _strips(canvas, (before, after), drawn, write)
    for i, (group, columns) in enumerate(zip(drawn, panels, strict=True)):
        _head(canvas, i, group, whole, places[i], write)
        _panel(canvas, columns, places[i], write)
    style.caption(canvas.figure, f"{note} {_how_to_read(drawn, groups, whole, after.words)}".strip())
    return canvas.figure, program_data(before, after)


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


def _head(canvas: Canvas, i: int, group: Group, whole: float, place: tuple[float, float], write: Writer) -> None:
    """Write what a region gains."""
    x, y = place
    gain, many = group[0].gain, len(group)
    places = f", in {many} places: {write(many * gain)} ({_share(many * gain, whole)})" if many > 1 else ""
    canvas.box(x, y + 0.06, 0.2, 0.2, "", facecolor=_COLOURS[i], lw=0)
    canvas.text(x + 0.1, y + 0.16, f"{i + 1}", 8, color="white", fontweight="bold", ha="center")
    words = f"{'gains' if gain >= 0 else 'costs'} {write(abs(gain))} ({_share(abs(gain), whole)} of the whole){places}"
    canvas.text(x + 0.28, y + 0.16, words, 8.5)


def _panel(canvas: Canvas, columns: Sequence[Column], place: tuple[float, float], write: Writer) -> None:
    longest = max(cost for column in columns for cost in column.costs)
    for number, column in enumerate(columns):
        x, y = place[0] + number * _COLUMN, place[1]
        word = "after" if column.after else "before"
        canvas.text(x + LEFT, y + 0.4, f"{word}: {write(sum(column.costs))}", 7.5, color="0.25")
        column.draw(canvas, x, y + _HEAD, longest, write)


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole else 0:.2f} %"


def _strips(canvas: Canvas, programs: Sequence[Program], groups: Sequence[Group], write: Writer) -> None:
    """Draw each program as a strip: a kernel is as wide as it takes long."""
    most = max(sum(kernel.cost for kernel in program.kernels) for program in programs)
    scale = (_WIDTH - 2 * MARGIN - _BEFORE_STRIP - _AFTER_STRIP) / most if most else 0.0
    for row, (program, word) in enumerate(zip(programs, ("before", "after"), strict=True)):
        numbers = {i: n for n, group in enumerate(groups) for r in group for i in (r.after if row else r.before)}
        x, y = MARGIN + _BEFORE_STRIP, 0.6 + row * 0.45
        canvas.text(MARGIN, y + _STRIP / 2, word, 9)
        for number, pairs in groupby(enumerate(program.kernels), key=lambda pair: numbers.get(pair[0])):
            run, word = [kernel for _, kernel in pairs], program.words.kernel
            width, colour = scale * sum(kernel.cost for kernel in run), "0.82" if number is None else _COLOURS[number]
            canvas.box(
                x, y, width, _STRIP, _about_run(run, number, write, word), facecolor=colour, edgecolor="white", lw=0.15
            )
            x += width
        canvas.text(x + 0.08, y + _STRIP / 2, write(sum(kernel.cost for kernel in program.kernels)), 9)


def _about_run(run: Sequence[Kernel], number: int | None, write: Writer, word: str) -> str:
    """Return what is shown at the pointer of neighbouring kernels: how many there are, and which cost most."""
    longest = sorted(run, key=lambda kernel: -kernel.cost)[:_TOLD]
    what = "not drawn below" if number is None else f"region {number + 1}"
    head = f"{with_noun(len(run), word)} ({what}): {write(sum(kernel.cost for kernel in run))}"
    return "\n".join([head, *(f"{kernel.name}: {write(kernel.cost)}" for kernel in longest)])


def _how_to_read(drawn: Sequence[Group], groups: Sequence[Group], whole: float, words: Words) -> str:
    kernel, kernels, members = words.kernel, plural(words.kernel), plural(words.member)
    if not groups:
        return f"No {kernel} differs from those of the default."
    rest = [region for group in groups[len(drawn) :] for region in group]
    gain, many = _share(sum(region.gain for region in rest), whole), "region" if len(rest) == 1 else "regions"
    more = f" Not drawn: {len(rest):,} {many} with a gain of {gain}." if rest else ""
    return (
        f"Strips: all {kernels} {words.strip}; those of a numbered region "
        f"have its colour. Below: the regions with the largest gains, the default on the left. A box is a {kernel}, "
        f"filled by its share of the region's most costly; an arrow is {words.edge}. Orange: a {kernel} that is gone, "
        f"because {words.gone}; green: a new one; blue: both have it, with the {members} that moved out (−) or "
        f"in (+).{more}"
    )
