"""An instruction that lacks what its opcode needs, by its name."""

from __future__ import annotations

FAULTS = (KeyError, IndexError, ValueError, TypeError, AttributeError)
"""What is raised where an operand, an attribute or a dimension is not there."""


class Malformed(Exception):
    """Says which instruction is not well-formed, and why."""

    def __init__(self, name: str, opcode: str, error: Exception) -> None:
        super().__init__(f"instruction {name!r} ({opcode}) is not well-formed ({error!r})")
