"""The states of an operation: each has a layout of the result and the wanted layouts of the operands.

Propagation decides the states of most operations; those of convolutions, dots and reshapes are tuned.
"""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

from ..hlo.module import Shape
from ..hlo.opcodes import SHUFFLE_OPERATIONS, Kind
from . import shapes
from .flatten import Operation
from .layouts import LANES, Layout, compact, completed, layouts, padded_bytes, padding, real_dims, tile_rows

ANY = -1
"""The wanted layout of an operand that may have any layout."""

# Vector operations per element, added to the cost of the opcode or in place of it.
RELAYOUT = SHUFFLE_OPERATIONS  # a transpose, or a copy whose minor dimension changes
RESTACK = 1.0  # a copy that keeps the minor dimension
LANE_SHIFT = 8.0  # a slice or concatenation along the minor dimension
_LANES_FACTOR, _SUBLANES_FACTOR = 2.0, 1.25  # a reduction along the minor dimension, along the second

MOST_OPTIONS = 8
_WORST_PADDING = 4.0  # options that make an array larger than necessary by this factor are left out

_TURN = 16.0  # vector operations to turn an element of a streamed operand; our own estimate

_SLICES = ("slice", "dynamic-slice")
_SAME_RANK = (
    *_SLICES,
    "dynamic-update-slice",
    "pad",
    "concatenate",
    "reverse",
    "reduce-window",
    "select-and-scatter",
)


class NodeState(NamedTuple):
    """One way in which an operation can work.

    Attributes:
      result: number of the result's layout.
      wanted: numbers of the operands' layouts, ANY for an operand that may have any layout.
      work: vector operations for the whole result.
      walked: the shape over which its loop runs, and the layout of that shape.
    """

    result: int
    wanted: tuple[int, ...]
    work: float
    walked: tuple[Shape, Layout]


Roles = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def states(node: Operation) -> list[NodeState]:
    """Return the states of an operation whose layout propagation decides.

    There is one for each layout of the result, in order, or for each layout of a reduction's operand.
    """
    if node.kind in (Kind.SOURCE, Kind.FREE, Kind.OPAQUE):
        wanted, made = tuple(completed(shape, ()) for shape in node.inputs), shapes.made(node)
        result = completed(node.shape, node.layout or ())
        return [NodeState(result, wanted, shapes.operations(node), (made, compact(made)))]
    if node.opcode == "reduce":
        return [_reduce(node, layout) for layout in layouts(node.inputs[0])]
    found = [_ordinary(node, number, layout) for number, layout in enumerate(layouts(node.shape))]
    return found + [state for each in found for state in _rows(node, each)]


def _rows(node: Operation, state: NodeState) -> list[NodeState]:
    """Return states in which a slice takes one row of each tile: the second-minor dimension is cut to one element.

    XLA:TPU reads stacked weights like this: a transpose of the whole stack before the loop moves nothing.
    """
    if node.opcode not in _SLICES or len(layouts(node.shape)) < 2 or state.wanted[0] < 0:
        return []
    operand = node.inputs[0]
    minor = layouts(operand)[state.wanted[0]][0]
    work = state.work + RESTACK * shapes.elements(node.shape)
    taken = [layouts(operand).index((minor, d)) for d in _cut(node) if node.shape.dims[d] == 1 and d != minor]
    return [state._replace(wanted=(there, *state.wanted[1:]), work=work) for there in taken]


def renames(node: Operation) -> bool:
    """True if the operation only renames dimensions, so that its result can share memory with its operand."""
    if len(node.inputs) != 1 or node.kind <= Kind.FREE:
        return False
    if node.opcode in ("transpose", "reshape"):
        return True
    return node.opcode == "broadcast" and _sizes(node.inputs[0]) == _sizes(node.shape)


def is_trivial(node: Operation) -> bool:
    """True if a reshape only adds or drops dimensions of size 1."""
    return _sizes(node.inputs[0]) == _sizes(node.shape)


def _sizes(shape: Shape) -> list[int]:
    return [shape.dims[d] for d in real_dims(shape.dims)]


def _ordinary(node: Operation, number: int, layout: Layout) -> NodeState:
    wanted = tuple(_wanted(node, place, layout) for place in range(len(node.inputs)))
    work, walked = shapes.operations(node), (node.shape, layout)
    if layout and layout[0] in _cut(node):
        work += LANE_SHIFT * shapes.elements(node.shape)
    if node.kind is Kind.REDUCE and wanted and wanted[0] >= 0:
        walked = (node.inputs[0], layouts(node.inputs[0])[wanted[0]])
        work *= _LANES_FACTOR if layout and layout[0] in _cut(node) else 1.0
    if shapes.walked(node) is not node.shape:  # an update in place
        update = shapes.walked(node)
        walked = (update, layouts(update)[completed(update, layout)])
    return NodeState(number, wanted, work, walked)


def _reduce(node: Operation, layout: Layout) -> NodeState:
    """Return the state in which a reduction takes its operand in a layout; the other dimensions give the result's."""
    gone = shapes.numbers(node, "dimensions")
    left = [d for d in range(len(node.inputs[0].dims)) if d not in gone]
    start = tuple(left.index(d) for d in layout if d in left)
    result = completed(node.shape, start) if len(left) == len(node.shape.dims) else completed(node.shape, ())
    work = shapes.operations(node)
    if layout:
        work *= _LANES_FACTOR if layout[0] in gone else _SUBLANES_FACTOR if layout[-1] in gone else 1.0
    wanted = (layouts(node.inputs[0]).index(layout), *(completed(shape, ()) for shape in node.inputs[1:]))
    return NodeState(result, wanted, work, (node.inputs[0], layout))


def _wanted(node: Operation, place: int, layout: Layout) -> int:
    """Return the number of the operand's layout that matches a layout of the result."""
    operand = node.inputs[place]
    if len(layouts(operand)) == 1:
        return 0
    there = _dims_there(node, place)
    minor = [there[d] for d in layout[:1] if d in there and operand.dims[there[d]] != 1]
    if not minor:
        return ANY
    return completed(operand, (*minor, *(there[d] for d in layout[1:] if d in there)))


def _dims_there(node: Operation, place: int) -> dict[int, int]:
    """Return for dimensions of the result the matching dimension of an operand, where there is one."""
    operand, result = node.inputs[place], node.shape
    rank = len(operand.dims)
    if node.opcode == "broadcast":
        return {d: i for i, d in enumerate(shapes.numbers(node, "dimensions")) if i < rank}
    if node.opcode == "transpose":
        order = shapes.numbers(node, "dimensions")
        return dict(enumerate(order)) if len(order) == rank else {}
    if node.opcode == "reshape":
        return dict(zip(real_dims(result.dims), real_dims(operand.dims), strict=True)) if is_trivial(node) else {}
    same = len(result.dims) == rank if node.opcode in _SAME_RANK else result.dims == operand.dims
    return {d: d for d in range(rank)} if same else {}


def _cut(node: Operation) -> list[int]:
    """Return the dimensions along which an operation shifts elements."""
    if node.opcode in ("concatenate", "reverse"):
        return shapes.numbers(node, "dimensions")
    if node.opcode not in _SAME_RANK:
        return []
    if node.kind is Kind.REDUCE:
        return [d for d, size in enumerate(shapes.window(node, "size")) if size != 1]
    part = node.inputs[1 if node.opcode == "dynamic-update-slice" else 0].dims
    return [d for d, (a, b) in enumerate(zip(part, node.shape.dims, strict=False)) if a != b]


def is_tuned(node: Operation) -> bool:
    """True if the layout of this operation is chosen and not left to propagation."""
    if node.kind is Kind.MATRIX:
        return len(node.inputs) > 1
    return node.kind is Kind.MOVE and node.opcode == "reshape" and not is_trivial(node)


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
            work = shapes.on_vector_unit(node) + _TURN * shapes.elements(streamed) * turned
            key = (result, wanted + tuple(completed(shape, ()) for shape in node.inputs[2:]))
            if key not in found or work < found[key].work:
                found[key] = NodeState(*key, work, (node.shape, compact(node.shape)))
    first, *rest = found.values()
    return [first, *sorted(rest, key=lambda state: _traffic(node, state))][:MOST_OPTIONS]


def _traffic(node: Operation, state: NodeState) -> float:
    """Return the bytes that a product moves plus its vector operations, each counted as a byte."""
    taken = [padded_bytes(s, layouts(s)[w]) for s, w in zip(node.inputs, state.wanted, strict=True)]
    return sum(taken) + padded_bytes(node.shape, layouts(node.shape)[state.result]) + state.work


def _roles(node: Operation) -> list[Roles]:
    """Return (contracted, free) of the left, (free, contracted) of the right operand, (right, left) of the result.

    If several dimensions have one role, the one that pads least is taken. The pixels of a convolution may run along the
    batch or along the widest spatial dimension.
    """
    return _dot_roles(node) if node.opcode == "dot" else _convolution_roles(node)


def _dot_roles(node: Operation) -> list[Roles]:
    left, right = node.inputs[0], node.inputs[1]
    batch, k = shapes.numbers(node, "lhs_batch_dims"), shapes.numbers(node, "lhs_contracting_dims")
    batch_there, k_there = shapes.numbers(node, "rhs_batch_dims"), shapes.numbers(node, "rhs_contracting_dims")
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
    if math.prod(operand.dims) != math.prod(result.dims):  # a bitcast of padded or differently typed bytes
        return layouts(operand).index(compact(operand)) if layout == compact(result) else ANY
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
        taken, made = [left.pop(0)], [right.pop(0)]
        while (a := math.prod(before[d] for d in taken)) != (b := math.prod(after[d] for d in made)):
            if a < b:
                taken.append(left.pop(0))
            else:
                made.append(right.pop(0))
        parts.append((taken, made))
    return parts
