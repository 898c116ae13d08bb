"""The operations whose layouts are tuned (convolution, dot and reshape), and the choices for each."""

from __future__ import annotations

import math
from itertools import product

from ..hlo.module import Shape
from ..hlo.opcodes import Kind
from . import shapes
from .flatten import Operation
from .layouts import LANES, compact, completed, layouts, padded_bytes, padding, tile_rows
from .states import ANY, RELAYOUT, NodeState, is_trivial

MOST_OPTIONS = 8
_WORST_PADDING = 4.0  # options that make an array larger than necessary by this factor are left out


def is_tuned(node: Operation) -> bool:
    """True if the layout of this operation is chosen and not left to propagation."""
    if node.kind is Kind.MATRIX:
        return len(node.inputs) > 1
    return node.kind is Kind.MOVE and node.opcode == "reshape" and not is_trivial(node)


_TURN = 16.0  # vector operations to turn an element of a streamed operand; our own estimate


def options(node: Operation) -> list[NodeState]:
    """Return the states to choose from; the first is the usual one."""
    return _reshape(node) if node.opcode == "reshape" else _product(node)


def _product(node: Operation) -> list[NodeState]:
    """Return orientations of a matrix product, cheapest first after the one with all contracted dimensions minor.

    The matrix unit streams one operand. The contracted dimension of that operand must be minor, otherwise the kernel
    transposes it; the other operand may have any layout. The free dimension of the streamed operand becomes the
    result's rows.
    """
    left, right = node.inputs[0], node.inputs[1]
    found: dict[tuple[int, tuple[int, ...]], NodeState] = {}
    for roles in _roles(node):
        for lefts, rights, results in product((0, 1), (0, 1), (0, 1)):
            turn = (slice(None), slice(None, None, -1))
            wanted = (completed(left, roles[0][turn[lefts]]), completed(right, roles[1][turn[rights]]))
            result = completed(node.shape, roles[2][turn[results]])
            streamed, turned = (right, not rights) if results else (left, bool(lefts))
            work = _TURN * shapes.elements(streamed) * turned
            key = (result, wanted + tuple(completed(shape, ()) for shape in node.inputs[2:]))
            if key not in found or work < found[key].work:
                found[key] = NodeState(*key, work, (node.shape, compact(node.shape)))
    first, *rest = found.values()
    return [first, *sorted(rest, key=lambda state: _traffic(node, state))][:MOST_OPTIONS]


def _traffic(node: Operation, state: NodeState) -> float:
    """Return the bytes that a product moves plus its vector operations, each counted as a byte."""
    taken = [padded_bytes(s, layouts(s)[w]) for s, w in zip(node.inputs, state.wanted, strict=True)]
    return sum(taken) + padded_bytes(node.shape, layouts(node.shape)[state.result]) + state.work


Roles = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _roles(node: Operation) -> list[Roles]:
    """Return (contracted, free) of the left, (free, contracted) of the right operand, (right, left) of the result.

    If several dimensions have one role, the one that pads least is taken. The pixels of a convolution may run along the
    batch or along the widest spatial dimension.
    """
    return _dot_roles(node) if node.opcode == "dot" else _convolution_roles(node)


def _dot_roles(node: Operation) -> list[Roles]:
    left, right = node.inputs[0], node.inputs[1]
    batch, k = _numbers(node, "lhs_batch_dims"), _numbers(node, "lhs_contracting_dims")
    batch_there, k_there = _numbers(node, "rhs_batch_dims"), _numbers(node, "rhs_contracting_dims")
    rows = [d for d in range(len(left.dims)) if d not in batch + k]
    columns = [d for d in range(len(right.dims)) if d not in batch_there + k_there]
    row, column = _best(left, rows), _best(right, columns)
    deep, deep_there = _best(left, k, LANES), _best(right, k_there, LANES)
    there = {d: len(batch) + i for i, d in enumerate(rows)}
    across = {d: len(batch) + len(rows) + i for i, d in enumerate(columns)}
    result = (*(across[d] for d in column), *(there[d] for d in row))
    return [(deep + row, column + deep_there, result)]


def _convolution_roles(node: Operation) -> list[Roles]:
    left, right, result = shapes.attribute(node, "dim_labels").replace("->", "_").split("_")
    spatial = [c for c in left if c.isdigit()]
    widest = max(spatial, key=lambda c: (node.shape.dims[result.index(c)], c), default="b")
    pixels = sorted({"b", widest}, key=lambda c: (_waste(node.shape, result.index(c)), c != "b"))
    return [
        (
            (left.index("f"), left.index(pixel)),
            (right.index("o"), right.index("i")),
            (result.index("f"), result.index(pixel)),
        )
        for pixel in pixels
    ]


def _best(shape: Shape, dims: list[int], tile: int = 0) -> tuple[int, ...]:
    """Return the dimension that pads least, as a tuple; on ties the largest, then the last."""
    real = [d for d in dims if shape.dims[d] != 1]
    rows = tile or tile_rows(shape.dtype)
    return (min(real, key=lambda d: (padding(shape.dims[d], rows), -shape.dims[d], -d)),) if real else ()


def _waste(shape: Shape, dim: int) -> float:
    return padding(shape.dims[dim], tile_rows(shape.dtype))


def _numbers(node: Operation, key: str) -> list[int]:
    return shapes.numbers(shapes.attribute(node, key))


def _reshape(node: Operation) -> list[NodeState]:
    """Return the compact layout, the layouts in which no data has to move, and others that pad little."""
    operand, result = node.inputs[0], node.shape
    least = _WORST_PADDING * padded_bytes(result, compact(result))
    found = []
    for number, layout in enumerate(layouts(result)):
        size, there = padded_bytes(result, layout), _same_place(operand, result, layout)
        work = RELAYOUT * shapes.elements(result)
        if size <= least:
            found.append(
                ((layout != compact(result), there < 0, size), NodeState(number, (there,), work, (result, layout)))
            )
    return [state for _, state in sorted(found, key=lambda pair: pair[0])][:MOST_OPTIONS]


def _same_place(operand: Shape, result: Shape, layout: tuple[int, ...]) -> int:
    """Return the operand's layout from which a reshape to a layout moves no data, ANY if there is none.

    The minor dimension must not be merged or split; the second may be if the rows of tiles stay whole.
    """
    if len(layout) < 2 or len(layouts(operand)) < 2 or math.prod(result.dims) == 0:
        return ANY
    parts = _parts(operand.dims, result.dims)
    place = {d: part for part in parts for d in part[1]}
    minor, second = place[layout[0]], place[layout[1]]
    if (len(minor[0]), len(minor[1])) != (1, 1) or layout[1] != second[1][-1]:
        return ANY
    rows = tile_rows(result.dtype)
    whole = operand.dims[second[0][-1]] % rows == 0 and result.dims[layout[1]] % rows == 0
    if (len(second[0]), len(second[1])) != (1, 1) and not whole:
        return ANY
    return layouts(operand).index((minor[0][0], second[0][-1]))


def _parts(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Return the smallest groups of dimensions that become groups of dimensions with the same number of elements."""
    left = [d for d, size in enumerate(before) if size != 1]
    right = [d for d, size in enumerate(after) if size != 1]
    parts = []
    while left or right:
        taken, given = [left.pop(0)], [right.pop(0)]
        while (a := math.prod(before[d] for d in taken)) != (b := math.prod(after[d] for d in given)):
            if a < b:
                taken.append(left.pop(0))
            else:
                given.append(right.pop(0))
        parts.append((taken, given))
    return parts
