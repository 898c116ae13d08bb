"""The kernels in the text of a scheduled program of XLA:TPU: the compiler's estimates, and rows of our model."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import shapes
from ..graph.flatten import Flattener, Operation
from ..graph.layouts import Layout, extents, minor_dims, padded_bytes
from ..hardware.kernel_row import KERNEL_WIDTH, Kernel
from ..hlo import reader as hlo
from ..hlo.module import Computation, Instruction, Module, Shape
from ..hlo.opcodes import Kind, bytes_of
from ..layout.arrays import Place

PLACEHOLDER, ENDLESS = 100, 2**62
"""Estimates up to the first number and from the second on mean that there is no estimate."""

DEFINITION = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = (.*?) [\w\-]+\(", re.MULTILINE)
"""Name and shape of an instruction."""

KINDS = ("matrix", "convolution", "reduction", "elementwise", "copy")
COMMON = 0.2
"""Cost of a byte of v4's common memory in a product, relative to the main memory; in loops they cost the same."""

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


def scheduled_programs(
    machine: str, names: Iterable[str], text: Callable[[str, str], str]
) -> Iterator[tuple[str, str]]:
    """Yield the name and the scheduled HLO of each program that can be compiled.

    Args:
      machine: one of `MACHINES`.
      names: of the programs.
      text: returns the scheduled HLO of a program on a machine; a program that raises a RuntimeError is left out.
    """
    for name in names:
        try:
            yield name, text(name, machine)
        except RuntimeError:
            continue


def estimated_kernels(text: str) -> Iterator[ScheduledKernel]:
    """Yield the kernels whose estimate is more than a placeholder for each step."""
    return (kernel for kernel in kernels(text) if kernel.cycles > PLACEHOLDER * kernel.steps)


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
    """Return what the compiler states about the kernel's walk over tiles."""
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


_OF_COPIES = ("copy", "select", "compare", "bitcast-convert")


def row(kernel: ScheduledKernel) -> tuple[NDArray[np.float64], str]:
    """Return the `(KERNEL_WIDTH,)` row of a kernel, with bytes by the layouts in the text, and one of `KINDS`."""
    nodes, _, places = operations_of(kernel)
    numbers = np.zeros(KERNEL_WIDTH)
    heavy = _heaviest(nodes, places)
    for node, where in zip(nodes, places, strict=True):
        for place in range(3):
            if where & (1 << place):
                numbers[Kernel.WORK + place] += shapes.operations(node) + shapes.on_vector_unit(node)
        numbers[Kernel.OPERATIONS] += where > 0 and node.kind > Kind.FREE
    numbers[Kernel.GROUPS : Kernel.SUMS] = shapes.on_matrix_unit(heavy)
    numbers[Kernel.ROWS] *= _all_products(nodes, places) / max(1.0, math.prod(shapes.matrix(heavy)))
    _add_bytes(numbers, kernel, nodes, places)
    numbers[Kernel.OUTER : Kernel.SIZE] = extents_of(heavy)
    walks = heavy.kind not in (Kind.MATRIX, Kind.REDUCE)
    numbers[Kernel.SUMS] = 4 * (math.prod(extents_of(heavy)) if walks else shapes.elements(heavy.shape))
    narrowest = min(bytes_of(leaf(node.shape).dtype) for node in nodes if node.output)
    numbers[Kernel.SIZE], numbers[Kernel.OPERANDS] = narrowest, len(kernel.operands)
    return numbers, _kind(heavy, nodes, places)


def operations_of(kernel: ScheduledKernel) -> tuple[list[Operation], list[int], list[int]]:
    """Return a kernel's operations, the numbers of its results, and where each is computed or read.

    The last are bits of `Place`; 0 for unused operations.
    """
    nodes, results = Flattener(_with_real_copies(kernel.module)).entry()
    return nodes, results, _places(nodes)


def _kind(heavy: Operation, nodes: list[Operation], places: list[int]) -> str:
    if heavy.kind is Kind.MATRIX:
        return "convolution" if shapes.positions(heavy)[1] > 1 else "matrix"
    if heavy.kind is Kind.REDUCE:
        return "reduction"
    computes = (n.kind is Kind.ELEMENTWISE and n.opcode not in _OF_COPIES for n in nodes)
    return "elementwise" if any(c and w for c, w in zip(computes, places, strict=True)) else "copy"


def _places(nodes: list[Operation]) -> list[int]:
    places = [Place.LOOP if node.output else 0 for node in nodes]
    for i in range(len(nodes) - 1, -1, -1):
        product = nodes[i].kind is Kind.MATRIX
        for position, operand in enumerate(nodes[i].operands):
            places[operand] |= (
                (Place.LEFT, Place.RIGHT)[position] if product and position < 2 and places[i] else places[i]
            )
    return places


def _heaviest(nodes: list[Operation], places: list[int]) -> Operation:
    """Return the node whose loop the kernel is: its largest matrix product, else reduction, else the largest node."""
    live = [node for node, where in zip(nodes, places, strict=True) if where]

    def weight(node: Operation) -> tuple[int, float]:
        if node.kind is Kind.MATRIX:
            return 2, math.prod(shapes.matrix(node))
        if node.kind is Kind.REDUCE:
            return 1, shapes.elements(node.inputs[0])
        return 0, shapes.elements(shapes.walked(node)) * (node.kind > Kind.FREE or node.output)

    return max(live, key=weight)


def _all_products(nodes: list[Operation], places: list[int]) -> float:
    """Return the multiply-adds of all products in a kernel: a further one counts as more rows of the largest."""
    return sum(math.prod(shapes.matrix(node)) for node, where in zip(nodes, places, strict=True) if where)


def _add_bytes(
    numbers: NDArray[np.float64], kernel: ScheduledKernel, nodes: list[Operation], places: list[int]
) -> None:
    """Fill in the bytes read at each place and the bytes written; buffers in the scratchpad do not count.

    The operands of a loop that computes always count, because the estimates make no difference there.
    """
    product, copies = numbers[Kernel.GROUPS] > 0, _is_copy(kernel)
    share = dict.fromkeys(range(len(kernel.operands)), 0.0)
    where = dict.fromkeys(share, 0)
    for node, at in zip(nodes, places, strict=True):
        for position, operand in enumerate(node.operands):
            source = nodes[operand].source
            if at and source and source.opcode == "parameter" and source.parameter_number in share:
                number = source.parameter_number
                share[number] = max(share[number], _share_read(node, position))
                inside = node.kind is Kind.MATRIX and position < 2
                where[number] |= (Place.LEFT, Place.RIGHT)[position] if inside else at
    for number, buffer in enumerate(kernel.operands):
        for place in range(3):
            if where[number] & (1 << place):
                moved = _moved(buffer, product) if product or copies else buffer.bytes
                numbers[Kernel.READ + place] += moved * min(1.0, share[number])
    part = max((_share_written(node) for node in nodes if node.output), default=1.0)
    numbers[Kernel.WRITTEN] = sum(_moved(buffer, product) for buffer in kernel.results) * part


def _moved(buffer: Buffer, product: bool) -> float:
    """Return the bytes that a buffer moves from or to memory, according to the estimates."""
    return 0.0 if buffer.on_chip else buffer.bytes * (COMMON if product and buffer.common else 1.0)


def _is_copy(kernel: ScheduledKernel) -> bool:
    computation = kernel.module.computations[kernel.module.entry]
    return computation.instructions[computation.root].opcode == "copy" and len(computation.instructions) == 2


def extents_of(node: Operation) -> tuple[float, float, float]:
    """Return outer extent, rows and columns in the order of the array's layout, in whole tiles."""
    shape = leaf(shapes.walked(node))
    return extents(shape, _layout(shape))


def _layout(shape: Shape) -> Layout:
    return minor_dims(shape, shape.layout or range(len(shape.dims))[::-1])


def bytes_in_layout(shape: Shape) -> float:
    """Return the bytes of an array, padded as its layout in the text says."""
    return padded_bytes(shape, () if shape.dtype == "tuple" else _layout(shape))


def _share_read(node: Operation, place: int) -> float:
    """Return the share of an operand in memory that is read."""
    part = {shapes.Read.ALL: 1.0, shapes.Read.NOTHING: 0.0}
    return part.get(
        shapes.reads(node, place), bytes_in_layout(node.shape) / max(1.0, bytes_in_layout(node.inputs[place]))
    )


def _share_written(node: Operation) -> float:
    """Return the share of a result that is written: an update in place writes a part."""
    return (
        bytes_in_layout(shapes.walked(node)) / max(1.0, bytes_in_layout(node.shape))
        if node.opcode == "dynamic-update-slice"
        else 1.0
    )


def leaf(shape: Shape) -> Shape:
    """Return an array, or the first one of a tuple."""
    while shape.dtype == "tuple":
        shape = shape.elements[0]
    return shape


def _with_real_copies(module: Module) -> Module:
    """Return what a module runs, with copies as operations; a change of the fastest dimension is a transposition."""
    computations, left = {}, [module.entry]
    while left:
        name = left.pop()
        if name in computations:
            continue
        computation = module.computations[name]
        instructions = tuple(_real_copy(computation, instruction) for instruction in computation.instructions)
        computations[name] = replace(computation, instructions=instructions)
        left += [called for instruction in instructions for called in instruction.called_computations]
    return replace(module, computations=computations)


def _real_copy(computation: Computation, instruction: Instruction) -> Instruction:
    if instruction.opcode != "copy":
        return instruction
    before, after = computation.instructions[instruction.operands[0]].shape, instruction.shape
    if not before.layout or before.layout[0] == (after.layout or before.layout)[0]:
        return replace(instruction, opcode="bitcast-convert")
    order = ",".join(map(str, range(len(after.dims))[::-1]))
    return replace(instruction, opcode="transpose", attributes={"dimensions": "{" + order + "}"})
