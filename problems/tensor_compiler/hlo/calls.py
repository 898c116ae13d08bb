"""Which instructions only call a computation, and how large a module is when all of these are inlined."""

from __future__ import annotations

from graphlib import TopologicalSorter

from .module import Instruction, Module
from .opcodes import asynchronous

LARGEST_INLINED = 4_000_000
"""Most instructions after inlining; about half of them, such as parameters and tuples, become no operation."""

_INLINED = ("call", "fusion", "async")


def inlined(instruction: Instruction) -> str | None:
    """Return the computation that an instruction stands for, if it only calls one."""
    opcode, stage = asynchronous(instruction.opcode)
    called = instruction.called_computations if opcode in _INLINED and stage in ("", "start") else ()
    return called[0] if called else None


def inlined_size(module: Module) -> int:
    """Return the number of instructions after inlining, without inlining: it may double with every computation."""
    entered = {
        name: [called for instruction in computation.instructions for called in _entered(instruction)]
        for name, computation in module.computations.items()
    }
    sizes: dict[str, int] = {}
    for name in TopologicalSorter(entered).static_order():
        sizes[name] = len(module.computations[name].instructions) + sum(sizes[called] for called in entered[name])
    return sizes[module.entry]


def _entered(instruction: Instruction) -> list[str]:
    """Return the computations that become part of the graph; the function of a reduction does not."""
    opcode, stage = asynchronous(instruction.opcode)
    if opcode in ("while", "conditional") and stage in ("", "start"):
        return list(instruction.called_computations)
    name = inlined(instruction)
    return [] if name is None else [name]
