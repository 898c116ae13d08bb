"""The error for an instruction that lacks something its opcode needs."""

from __future__ import annotations

FAULTS = (KeyError, IndexError, ValueError, TypeError, AttributeError)
"""The exceptions raised when an operand, an attribute or a dimension is missing."""


class Malformed(Exception):
    """Says which instruction is not well-formed, and why."""

    def __init__(self, name: str, opcode: str, error: Exception) -> None:
        super().__init__(f"instruction {name!r} ({opcode}) is not well-formed ({error!r})")
