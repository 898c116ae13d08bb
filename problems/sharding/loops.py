"""The loops of an operation: which dimension of its result and of its operands each runs over.

Splitting a loop over an axis of the mesh splits those dimensions. A loop that runs over no dimension of the result adds
up, so that splitting it leaves partial sums.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from ..tensor_compiler.graph.flatten import Operation
from ..tensor_compiler.hlo.opcodes import Kind


@dataclass(frozen=True)
class Loop:
    """A loop of an operation.

    Attributes:
      extent: how often it runs.
      result: the dimension of the result, -1 if it adds up.
      operands: the dimension of each operand by its place; of those that are missing, all devices need all.
    """

    extent: int
    result: int
    operands: dict[int, int]


def loops(node: Operation) -> list[Loop]:
    """Return the loops of an operation that may be split."""
    dims, inputs = node.shape.dims, [shape.dims for shape in node.inputs]
    if node.opcode == "dot":
        return _dot(node)
    if node.opcode == "convolution":
        return _convolution(node)
    if node.opcode == "reduce":
        return _reduce(node)
    maps: list[dict[int, int]] = [{} for _ in dims]
    for place, operand in enumerate(inputs):
        for mine, theirs in _aligned(node, operand):
            maps[mine][place] = theirs
    return [Loop(extent, d, maps[d]) for d, extent in enumerate(dims)]


def _aligned(node: Operation, operand: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return which dimension of the result is which of an operand."""
    dims = node.shape.dims
    if node.opcode == "broadcast":
        return [(mine, theirs) for theirs, mine in enumerate(_numbers(node, "dimensions")) if operand]
    if node.opcode == "transpose":
        return list(enumerate(_numbers(node, "dimensions")))
    if node.opcode == "reshape":
        return _reshaped(dims, operand)
    if node.kind in (Kind.ELEMENTWISE, Kind.MOVE, Kind.REDUCE) and len(operand) == len(dims):
        return [(d, d) for d, (mine, theirs) in enumerate(zip(dims, operand, strict=True)) if mine == theirs]
    return []


def _reshaped(dims: tuple[int, ...], operand: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the dimensions that begin at the same place: splitting either splits the other."""
    mine = {product: d for d, product in reversed(list(enumerate(_before(dims)))) if dims[d] > 1}
    theirs = {product: d for d, product in reversed(list(enumerate(_before(operand)))) if operand[d] > 1}
    return [(d, theirs[product]) for product, d in mine.items() if product in theirs]


def _before(dims: tuple[int, ...]) -> list[int]:
    return [1, *itertools.accumulate(dims, lambda a, b: a * b)][: len(dims)]


def _reduce(node: Operation) -> list[Loop]:
    reduced, count = _numbers(node, "dimensions"), (len(node.inputs) + 1) // 2
    kept = [d for d in range(len(node.inputs[0].dims)) if d not in reduced]
    result = {theirs: mine for mine, theirs in enumerate(kept)}
    dims = enumerate(node.inputs[0].dims)
    return [Loop(extent, result.get(d, -1), dict.fromkeys(range(count), d)) for d, extent in dims]


def _dot(node: Operation) -> list[Loop]:
    left, right = (shape.dims for shape in node.inputs[:2])
    names = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
    batch_left, batch_right, depth_left, depth_right = (_numbers(node, name) for name in names)
    found = [Loop(left[i], n, {0: i, 1: j}) for n, (i, j) in enumerate(zip(batch_left, batch_right, strict=True))]
    rows = [i for i in range(len(left)) if i not in batch_left + depth_left]
    columns = [j for j in range(len(right)) if j not in batch_right + depth_right]
    found += [Loop(left[i], len(batch_left) + n, {0: i}) for n, i in enumerate(rows)]
    found += [Loop(right[j], len(batch_left) + len(rows) + n, {1: j}) for n, j in enumerate(columns)]
    return found + [Loop(left[i], -1, {0: i, 1: j}) for i, j in zip(depth_left, depth_right, strict=True)]


def _convolution(node: Operation) -> list[Loop]:
    """Return the loops over images and features; pixels are not split."""
    left, right, result = re.split("_|->", node.source.attributes["dim_labels"] if node.source else "")
    images, features = left.index("b"), right.index("o")
    found = [
        Loop(node.inputs[0].dims[images], result.index("b"), {0: images}),
        Loop(node.inputs[1].dims[features], result.index("f"), {1: features}),
    ]
    grouped = node.source and {"feature_group_count", "batch_group_count"} & set(node.source.attributes)
    depth = Loop(node.inputs[0].dims[left.index("f")], -1, {0: left.index("f"), 1: right.index("i")})
    return found[: 0 if grouped else 2] if grouped else [*found, depth]


def _numbers(node: Operation, key: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", node.source.attributes.get(key, "") if node.source else "")]
