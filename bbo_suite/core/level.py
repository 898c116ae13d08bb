"""What a strategy knows of a problem: levels, whose strategies are not ranked with each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import Any

LEVEL = "level"
"""The key of `run.json`, and the column of tables, that says what a strategy knows."""

OLDER_FLAGS = ("uses_structure", "uses_parts")
"""What older files and tables hold instead; `uses_parts` may be missing."""

NOT_COUNTED = "compiling is not counted"
"""The footnote of every claim about measurements saved: a compiler may take longer than a measurement."""


class Level(IntEnum):
    """A level of knowledge; each level knows what the one before it knows, and more.

    Attributes:
      word: for files and tables.
      mark: follows the name of a strategy in tables.
      sees: what a strategy of this level sees, in a word or two.
      label: the same in labels of figures.
    """

    COSTS = 0, "", "costs only", ""
    COMPILATION = 1, "+", "compilations", "sees compilations"
    STRUCTURE = 2, "*", "structure", "uses structure"
    PARTS = 3, "**", "costs of parts", "sees parts"

    mark: str
    sees: str
    label: str

    def __new__(cls, number: int, mark: str, sees: str, label: str) -> Level:
        """Return a level that compares as a number."""
        made = int.__new__(cls, number)
        made._value_ = number
        made.mark, made.sees, made.label = mark, sees, label
        return made

    @property
    def word(self) -> str:
        """The level as text for files and tables."""
        return self.name.lower()

    @classmethod
    def of(cls, facts: Mapping[Any, Any]) -> Level:
        """Return the level in a `run.json`, or in a row of a table; older ones hold two flags instead.

        Raises:
          ValueError: there is no such level.
        """
        if LEVEL in facts:
            return cls.named(facts[LEVEL])
        structure, parts = (_flag(facts, name) for name in OLDER_FLAGS)
        return cls.PARTS if parts else cls.STRUCTURE if structure else cls.COSTS

    @classmethod
    def named(cls, word: object) -> Level:
        """Return the level with a word.

        Raises:
          ValueError: there is none.
        """
        for level in cls:
            if level.word == word:
                return level
        raise ValueError(f"{word!r} is no level of knowledge; choose one of {', '.join(each.word for each in cls)}")

    def marked(self, strategy: str) -> str:
        """Return the name of a strategy with its mark."""
        return f"{strategy} {self.mark}".rstrip()


def _flag(facts: Mapping[Any, Any], name: str) -> bool:
    found = str(facts.get(name, False)).lower()
    if found not in ("true", "false"):
        raise ValueError(f"{name} is neither true nor false: {found!r}")
    return found == "true"


def explained(levels: Collection[Level]) -> str:
    """Return what the marks of some levels mean; empty if there is none."""
    meanings = {
        Level.COMPILATION: f"compiles candidates that it does not measure: {NOT_COUNTED}",
        Level.STRUCTURE: "uses the structure",
        Level.PARTS: f"sees costs of parts: compare it by measurements saved, {NOT_COUNTED}",
    }
    return ", ".join(f"{level.mark} {meaning}" for level, meaning in meanings.items() if level in levels)
