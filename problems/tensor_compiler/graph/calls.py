"""Which computations an instruction enters, and how many instructions a program has after inlining."""

from __future__ import annotations

from graphlib import TopologicalSorter

from ..hlo.module import Instruction, Module, computation_names

_INLINED = ("call", "fusion", "async-start")


def inlined(instruction: Instruction) -> str | None:
    """Return the computation that an instruction stands for, if it only calls one."""
    called = instruction.called_computations if instruction.opcode in _INLINED else ()
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
    if instruction.opcode == "while":
        return computation_names(instruction.attributes.get("body", ""))
    if instruction.opcode == "conditional":
        return list(instruction.called_computations)
    name = inlined(instruction)
    return [] if name is None else [name]
