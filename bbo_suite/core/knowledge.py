"""What a strategy knows of a problem: three levels, whose strategies are not ranked with each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, Protocol

FLAGS = ("uses_structure", "uses_parts")
"""The keys of `run.json`, and the columns of tables, that say what a strategy knows. Older ones have only the first."""


NOT_COUNTED = "compiling is not counted"
"""What every claim about measurements saved must say: a compiler may take longer than a measurement."""


class Knowing(Protocol):
    """A strategy's class, or anything else that says what it uses."""

    uses_structure: bool
    uses_parts: bool


class Knowledge(Enum):
    """A level of knowledge; each level knows what the one before it knows, and more.

    Attributes:
      mark: follows the name of a strategy in tables.
      sees: what a strategy of this level sees, in a word or two.
      label: the same in labels of figures.
    """

    COSTS = ("", "costs only", "")
    STRUCTURE = ("*", "structure", "uses structure")
    PARTS = ("**", "costs of parts", "sees parts")

    def __init__(self, mark: str, sees: str, label: str) -> None:
        self.mark, self.sees, self.label = mark, sees, label

    @classmethod
    def of(cls, facts: Mapping[Any, Any]) -> Knowledge:
        """Return the level that the flags in a `run.json`, or in a row of a table, tell."""
        if facts.get("uses_parts"):
            return cls.PARTS
        return cls.STRUCTURE if facts["uses_structure"] else cls.COSTS

    def marked(self, strategy: str) -> str:
        """Return the name of a strategy with its mark."""
        return f"{strategy} {self.mark}".rstrip()


def flags(strategy: Knowing) -> dict[str, bool]:
    """Return what a strategy knows, by `FLAGS`; one that sees parts sees the structure, too."""
    return {"uses_structure": strategy.uses_structure or strategy.uses_parts, "uses_parts": strategy.uses_parts}


def flags_of(level: Knowledge) -> dict[str, bool]:
    """Return a level by `FLAGS`."""
    return {"uses_structure": level is not Knowledge.COSTS, "uses_parts": level is Knowledge.PARTS}


def explained(levels: Collection[Knowledge]) -> str:
    """Return what the marks of some levels mean; empty if there is none."""
    meanings = {
        Knowledge.STRUCTURE: "uses the structure",
        Knowledge.PARTS: f"sees costs of parts: compare it by measurements saved, {NOT_COUNTED}",
    }
    return ", ".join(f"{level.mark} {meaning}" for level, meaning in meanings.items() if level in levels)
