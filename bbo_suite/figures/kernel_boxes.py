"""Some kernels of a program as boxes in the order in which they run, with arrows where one reads another's result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from matplotlib.patches import FancyArrowPatch

from ..core.program import Kernel, Program
from . import style
from .marks import tell
from .regions import neighbours
from .sheet import Sheet

WIDTH, LINE, LEFT = 2.1, 0.135, 0.27
"""Inches: of a box, from one line of text to the next, and left of the boxes for arrows."""
_SPACE, _BESIDE, _PADDING, _BULGE = 0.09, 0.16, 0.04, 0.22
"""Inches: between two boxes, for a line about neighbours, between a box and its text, and left of a box for arrows."""
_SHOWN, _LINES, _LETTERS, _TOLD = 7, 3, 37, 40
"""Kernels of a column, lines of a box, letters of a line, and instructions named at the pointer, at most."""
GONE, NEW, CHANGED = "#D55E00", "#009E73", "#0072B2"

Writer = Callable[[float], str]
"""Writes a cost."""


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

    def draw(self, sheet: Sheet, x: float, y: float, longest: float, write: Writer) -> None:
        """Draw the column with its upper left corner at (x, y); a box of cost `longest` is filled to its width."""
        read, readers = neighbours(self.program, self.kernels)
        self._name(sheet, "reads", read, x, y)
        top, places = y + _BESIDE, {}
        for i in self.shown:
            height = self._box_height(self.program.kernels[i])
            self._box(sheet, self.program.kernels[i], x + LEFT, top, longest, write)
            places[i] = (x + LEFT, top + height / 2)
            top += height + _SPACE
        if hidden := sorted(set(self.kernels) - set(self.shown)):
            rest = write(sum(self.program.kernels[i].cost for i in hidden))
            sheet.text(x + LEFT, top + LINE / 2, f"… {len(hidden)} more, {rest}", 6.5, color="0.35")
            top += LINE
        self._arrows(sheet, places)
        self._name(sheet, "read by", readers, x, top)

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

    def _box(self, sheet: Sheet, kernel: Kernel, x: float, y: float, longest: float, write: Writer) -> None:
        height, text = self._box_height(kernel), about(kernel, write)
        colour = CHANGED if self._twin(kernel) else NEW if self.after else GONE
        filled = WIDTH * kernel.cost / longest if longest else 0.0
        sheet.box(x, y, WIDTH, height, text, facecolor="0.94", edgecolor=colour, lw=1.1)
        sheet.box(x, y, filled, height, text, facecolor=colour, alpha=0.28, lw=0)
        middle = y + _PADDING + LINE / 2
        sheet.text(x + 0.05, middle, style.short(kernel.name, _LETTERS - 14), 7, fontweight="bold")
        sheet.text(x + WIDTH - 0.05, middle, write(kernel.cost), 7, ha="right")
        for number, line in enumerate(self._lines(kernel), start=1):
            sheet.text(x + 0.08, middle + LINE * number, style.short(line, _LETTERS), 6.5, color="0.25")

    def _arrows(self, sheet: Sheet, places: dict[int, tuple[float, float]]) -> None:
        for a, b in self.program.edges.tolist():
            if a in places and b in places:
                bend = min(0.55, 2 * _BULGE / (places[b][1] - places[a][1]))
                sheet.ax.add_patch(
                    FancyArrowPatch(
                        places[a], places[b], connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>",
                        mutation_scale=6, lw=0.7, color="0.35", shrinkA=0, shrinkB=0,
                    )
                )  # fmt: skip

    def _name(self, sheet: Sheet, word: str, kernels: Sequence[int], x: float, y: float) -> None:
        """Name the kernels outside that these read, or that read them, in one line."""
        names = [self.program.kernels[i].name for i in kernels]
        if names:
            more = f" and {len(names) - 2} more" if len(names) > 2 else ""
            text = f"{word} {', '.join(style.short(name, 12) for name in names[:2])}{more}"
            line = sheet.text(x + LEFT, y + _BESIDE / 2 - 0.01, text, 6.2, color="0.45")
            tell(line, "\n".join([word, *names[:_TOLD]]))


def about(kernel: Kernel, write: Writer) -> str:
    """Return what is shown of a kernel at the pointer: its cost, what is chosen for it, and its instructions."""
    many = len(kernel.members)
    head = f"{kernel.name}: {write(kernel.cost)}, {many} instruction{'' if many == 1 else 's'}"
    settings = [f"{name}: {text}" for name, text in kernel.settings.items()]
    more = [f"… {many - _TOLD} more"] if many > _TOLD else []
    return "\n".join([head, *settings, *kernel.members[:_TOLD], *more])
