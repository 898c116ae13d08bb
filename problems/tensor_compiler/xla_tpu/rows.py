"""A kernel of the real compiler as a row of the hardware model, everything in it fused as it is there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .. import shapes, timing
from ..flatten import Flattener, Node
from ..fusion_arrays import LEFT, LOOPING, RIGHT
from ..hlo_types import Computation, Instruction, Module, Shape
from ..opcodes import Kind, bytes_of
from .kernels import Kernel


def row(kernel: Kernel) -> NDArray[np.float64]:
    """Return the `(KERNEL_WIDTH,)` row (see `timing`); bytes are those of the layouts in the text."""
    nodes = Flattener(_with_real_copies(kernel.module)).entry()
    places, numbers = _places(nodes), np.zeros(timing.KERNEL_WIDTH)
    heavy = _heaviest(nodes, places)
    for node, where in zip(nodes, places, strict=True):
        for place in range(3):
            if where & (1 << place):
                numbers[timing.WORK + place] += shapes.operations(node)
        numbers[timing.OPERATIONS] += where > 0 and node.kind > Kind.FREE
    _add_bytes(numbers, kernel, nodes, places)
    numbers[timing.GROUPS : timing.SUMS] = shapes.matrix(heavy)
    numbers[timing.SUMS] = 4 * shapes.elements(heavy.shape)
    numbers[timing.OUTER : timing.SIZE] = _extents(heavy)
    numbers[timing.SIZE], numbers[timing.OPERANDS] = bytes_of(_leaf(heavy.shape).dtype), len(kernel.operands)
    return numbers


def _places(nodes: list[Node]) -> list[int]:
    """Return where in the kernel each node is computed or read, as bits; 0 for what nothing needs."""
    places = [LOOPING if node.output else 0 for node in nodes]
    for i in range(len(nodes) - 1, -1, -1):
        product = nodes[i].kind is Kind.MATRIX
        for position, operand in enumerate(nodes[i].operands):
            places[operand] |= (LEFT, RIGHT)[position] if product and position < 2 and places[i] else places[i]
    return places


def _heaviest(nodes: list[Node], places: list[int]) -> Node:
    """Return the node whose loop the kernel is: its largest matrix product, else reduction, else the largest node."""
    live = [node for node, where in zip(nodes, places, strict=True) if where]

    def weight(node: Node) -> tuple[int, float]:
        if node.kind is Kind.MATRIX:
            return 2, math.prod(shapes.matrix(node))
        if node.kind is Kind.REDUCE:
            return 1, shapes.elements(node.inputs[0])
        return 0, shapes.elements(node.shape) * (node.kind > Kind.FREE or node.output)

    return max(live, key=weight)


def _add_bytes(numbers: NDArray[np.float64], kernel: Kernel, nodes: list[Node], places: list[int]) -> None:
    """Fill in what is read at each place, and written; what lies in the scratchpad moves nothing."""
    share = dict.fromkeys(range(len(kernel.operands)), 0.0)
    where = dict.fromkeys(share, 0)
    for node, at in zip(nodes, places, strict=True):
        for position, operand in enumerate(node.operands):
            source = nodes[operand].source
            if at and source and source.opcode == "parameter" and source.parameter_number in share:
                number, whole = source.parameter_number, shapes.padded_bytes(nodes[operand].shape)
                share[number] = max(share[number], shapes.read_bytes(node, position) / max(1.0, whole))
                product = node.kind is Kind.MATRIX and position < 2
                where[number] |= (LEFT, RIGHT)[position] if product else at
    for number, buffer in enumerate(kernel.operands):
        for place in range(3):
            if where[number] & (1 << place) and not buffer.on_chip:
                numbers[timing.READ + place] += buffer.bytes * min(1.0, share[number])
    updated = [shapes.written_bytes(n) / max(1.0, shapes.padded_bytes(n.shape)) for n in nodes if n.output]
    part = max(updated, default=1.0)
    numbers[timing.WRITTEN] = sum(buffer.bytes for buffer in kernel.results if not buffer.on_chip) * part


def _extents(node: Node) -> tuple[float, float, float]:
    """Return outer extent, rows and columns in the order in which the array lies in memory."""
    shape = _leaf(node.inputs[0] if node.kind is Kind.REDUCE and node.inputs else node.shape)
    order = shape.layout or range(len(shape.dims))[::-1]
    columns, rows, *outer = *(shape.dims[d] for d in order), 1, 1
    return float(max(1, math.prod(outer))), float(max(1, rows)), float(max(1, columns))


def _leaf(shape: Shape) -> Shape:
    while shape.dtype == "tuple":
        shape = shape.elements[0]
    return shape


def _with_real_copies(module: Module) -> Module:
    """Return the module with copies that change the layout as transpositions: they move every element."""
    computations = {}
    for name, computation in module.computations.items():
        instructions = [_real_copy(computation, instruction) for instruction in computation.instructions]
        computations[name] = replace(computation, instructions=tuple(instructions))
    return replace(module, computations=computations)


def _real_copy(computation: Computation, instruction: Instruction) -> Instruction:
    if instruction.opcode != "copy":
        return instruction
    before, after = computation.instructions[instruction.operands[0]].shape, instruction.shape
    if before.layout == after.layout or not before.layout:
        return replace(instruction, opcode="negate")
    order = ",".join(map(str, range(len(after.dims))[::-1]))
    return replace(instruction, opcode="transpose", attributes={"dimensions": "{" + order + "}"})
