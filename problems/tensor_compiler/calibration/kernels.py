"""The kernels in the text of a scheduled program of XLA:TPU, each with the compiler's own estimate."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..hlo import reader as hlo
from ..hlo.module import Computation, Instruction, Module
from ..hlo.opcodes import bytes_of

PLACEHOLDER, ENDLESS = 100, 2**62
"""Estimates up to the first number and from the second on mean that there is no estimate."""

DEFINITION = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = (.*?) [\w\-]+\(", re.MULTILINE)
"""Name and shape of an instruction."""

_ARRAY = re.compile(r"(\w+)\[([\d,]*)\](?:\{([\d,]*)(?::([^}]*))?\})?")
_TILE = re.compile(r"T\((\d+(?:,\d+)*)\)")


@dataclass(frozen=True)
class Buffer:
    """An array that a kernel reads or writes.

    Attributes:
      bytes: of the array, padded to the tile of its layout.
      on_chip: True if it is in the scratchpad, so that nothing is moved from memory.
      common: True if it is in v4's common memory, which is faster than the main memory.
    """

    bytes: float
    on_chip: bool
    common: bool = False


@dataclass(frozen=True)
class ScheduledKernel:
    """One kernel of a scheduled program.

    Attributes:
      name: of the instruction.
      module: its entry computes what the kernel computes; layouts are those of the text.
      operands, results: by parameter number; in order.
      cycles: the compiler's estimate.
      tile: of the result, in the compiler's own units, from the slowest to the fastest dimension; empty if not stated.
      steps: iterations over tiles.
      buffers: of each window.
    """

    name: str
    module: Module
    operands: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    cycles: float
    tile: tuple[int, ...]
    steps: int
    buffers: int


def kernels(text: str) -> Iterator[ScheduledKernel]:
    """Yield the kernels that have an estimate, those of loop bodies once; raises UserError if the text is not HLO."""
    module = hlo.parse(text, "scheduled HLO")
    buffers = buffers_of(text)
    inner = {name for c in module.computations.values() for i in c.instructions for name in fused(i)}
    for computation in module.computations.values():
        if computation.name not in inner:
            for instruction in computation.instructions:
                window = window_of(instruction)
                if PLACEHOLDER < int(window.get("estimated_cycles", 0)) < ENDLESS:
                    yield _kernel(module, computation, instruction, window, buffers)


def buffers_of(text: str) -> dict[str, tuple[Buffer, ...]]:
    """Return the arrays in each instruction's result, by the instruction's name."""
    return {name: tuple(map(_buffer, _ARRAY.finditer(shape))) for name, shape in DEFINITION.findall(text)}


def _kernel(
    module: Module,
    computation: Computation,
    instruction: Instruction,
    window: dict[str, Any],
    buffers: dict[str, tuple[Buffer, ...]],
) -> ScheduledKernel:
    operands = [computation.instructions[i] for i in instruction.operands]
    return ScheduledKernel(
        name=instruction.name,
        module=_alone(module, instruction, operands),
        operands=tuple(buffer for operand in operands for buffer in buffers[operand.name]),
        results=buffers[instruction.name],
        cycles=float(window["estimated_cycles"]),
        tile=tuple(map(int, window["output_window_bounds"])),
        steps=math.prod(map(int, window["iteration_bounds"])),
        buffers=int(window["buffering_level"]),
    )


def fused(instruction: Instruction) -> tuple[str, ...]:
    """Return the computations that are part of the instruction's kernel."""
    return () if instruction.opcode in ("while", "conditional", "call") else instruction.called_computations


def window_of(instruction: Instruction) -> dict[str, Any]:
    """Return the compiler's notes about the kernel's walk over tiles."""
    config = instruction.attributes.get("backend_config", "")
    return json.loads(config).get("window_config", {}) if "estimated_cycles" in config else {}


def _alone(module: Module, instruction: Instruction, operands: list[Instruction]) -> Module:
    """Return the instruction as a module of its own; a fusion's computation is one already."""
    if instruction.opcode == "fusion":
        return Module(module.name, module.computations, instruction.called_computations[0])
    places = range(len(operands))
    parameters = [Instruction(f"p{i}", "parameter", operands[i].shape, (), {}, None, i) for i in places]
    lone = Instruction(
        instruction.name, instruction.opcode, instruction.shape, tuple(places), instruction.attributes, None, None
    )
    entry = Computation(f"alone.{instruction.name}", (*parameters, lone), len(operands))
    return Module(module.name, module.computations | {entry.name: entry}, entry.name)


def _buffer(array: re.Match[str]) -> Buffer:
    dtype, dims, order, layout = array.groups(default="")
    sizes = [int(d) for d in dims.split(",") if d]
    physical = [sizes[int(d)] for d in order.split(",") if d]  # the fastest dimension first
    tile = _TILE.search(layout)
    if tile:
        for place, size in enumerate(map(int, reversed(tile[1].split(",")))):
            if place < len(physical):
                physical[place] = -(-physical[place] // size) * size
    return Buffer(math.prod(physical) * bytes_of(dtype), "S(1)" in layout, "S(3)" in layout)
