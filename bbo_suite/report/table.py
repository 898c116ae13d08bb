"""Tables of the page: cells with text and a sort key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..core.level import Level, explained
from ..scores import Scores
from . import formatting


@dataclass(frozen=True)
class Cell:
    """The text of a cell.

    Attributes:
      number: that it is sorted by; None for text, which is sorted by itself.
      level: of the strategy that it names, if it names one.
    """

    text: str
    number: float | None = None
    level: Level | None = None

    @property
    def key(self) -> str:
        """The sort key for a browser: a number, or empty for text."""
        return "" if self.number is None else f"{self.number:.17g}"


@dataclass(frozen=True)
class Table:
    """A table with a heading and a note that explains it.

    Attributes:
      name: of its anchor in the page.
    """

    name: str
    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]] = field(default_factory=list)

    def naming(self, ratio: str) -> Table:
        """Return the table with this word for *speedup* in its title, note and columns: of costs that are no times."""
        title, note, *columns = (
            text.replace("speedup", ratio).replace("Speedup", ratio.capitalize())
            for text in (self.title, self.note, *self.columns)
        )
        return replace(self, title=title, note=note, columns=columns)

    @property
    def caption(self) -> str:
        """The note, and what the marks of strategies mean."""
        marks = explained({cell.level for row in self.rows for cell in row if cell.level})
        return " ".join(filter(None, (self.note, marks and f"{marks}.")))

    @property
    def numeric(self) -> list[bool]:
        """For each column, True if it contains numbers."""
        return [any(row[i].number is not None for row in self.rows) for i in range(len(self.columns))]


def text(value: object) -> Cell:
    """Return a cell of text."""
    return Cell(str(value))


def strategy(name: str, level: Level) -> Cell:
    """Return a cell with a strategy, marked by what it knows."""
    return Cell(level.marked(name), level=level)


def marked(scores: Scores, name: str) -> Cell:
    """Return a cell with a strategy of a study, marked by what it knows."""
    return strategy(name, scores.levels[name])


def count(value: int) -> Cell:
    """Return a cell with an integer."""
    return Cell(f"{value:,}", value)


def number(value: float, shown: str) -> Cell:
    """Return a cell that is sorted by a number; nan is last in either order."""
    return Cell(shown, value)


def speedup(value: float, low: float = math.nan, high: float = math.nan) -> Cell:
    """Return a cell with a speedup, and its interval if there is one."""
    bounds = formatting.interval(low, high)
    return number(value, formatting.speedup(value) if bounds == "–" else f"{formatting.speedup(value)} ({bounds})")


def p_value(p: float) -> Cell:
    """Return a cell with a p-value."""
    return Cell(formatting.p_value(p), p)
