"""The operations and element types of a program that the compiler does not know and has to guess."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .module import Module, Shape
from .opcodes import NAMED, is_type


def unknown(module: Module) -> dict[str, str]:
    """Return facts about the unknown operations and types of a module; empty if all are known."""
    instructions = [i for computation in module.computations.values() for i in computation.instructions]
    opcodes = Counter(i.opcode for i in instructions if i.opcode not in NAMED)
    types = Counter(t for i in instructions for t in _types(i.shape) if not is_type(t))
    facts = {}
    if opcodes:
        facts["operations of unknown kind"] = f"{_listed(opcodes)}; each is taken for a kernel of its own"
    if types:
        facts["results of unknown type"] = f"{_listed(types)}; taken to have 32 bits an element"
    return facts


def _types(shape: Shape) -> Iterator[str]:
    if shape.dtype != "tuple":
        yield shape.dtype
    for part in shape.elements:
        yield from _types(part)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
