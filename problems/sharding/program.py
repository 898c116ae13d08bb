"""Sharding problems of our own programs: the loops of operations, ways to split them, and their costs on a mesh."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..tensor_compiler.graph import shapes
from ..tensor_compiler.graph.build import in_order
from ..tensor_compiler.graph.flatten import Flattener, Operation
from ..tensor_compiler.hlo import reader
from ..tensor_compiler.hlo.opcodes import Kind, bytes_of
from ..tensor_compiler.tasks.programs import lowered
from .graph import ShardingGraph, graph_of
from .mesh import Mesh, Spec


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
        return [(mine, theirs) for theirs, mine in enumerate(shapes.numbers(node, "dimensions")) if operand]
    if node.opcode == "transpose":
        return list(enumerate(shapes.numbers(node, "dimensions")))
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
    reduced, count = shapes.numbers(node, "dimensions"), (len(node.inputs) + 1) // 2
    kept = [d for d in range(len(node.inputs[0].dims)) if d not in reduced]
    result = {theirs: mine for mine, theirs in enumerate(kept)}
    dims = enumerate(node.inputs[0].dims)
    return [Loop(extent, result.get(d, -1), dict.fromkeys(range(count), d)) for d, extent in dims]


def _dot(node: Operation) -> list[Loop]:
    left, right = (shape.dims for shape in node.inputs[:2])
    names = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
    batch_left, batch_right, depth_left, depth_right = (shapes.numbers(node, name) for name in names)
    found = [Loop(left[i], n, {0: i, 1: j}) for n, (i, j) in enumerate(zip(batch_left, batch_right, strict=True))]
    rows = [i for i in range(len(left)) if i not in batch_left + depth_left]
    columns = [j for j in range(len(right)) if j not in batch_right + depth_right]
    found += [Loop(left[i], len(batch_left) + n, {0: i}) for n, i in enumerate(rows)]
    found += [Loop(right[j], len(batch_left) + len(rows) + n, {1: j}) for n, j in enumerate(columns)]
    return found + [Loop(left[i], -1, {0: i, 1: j}) for i, j in zip(depth_left, depth_right, strict=True)]


def _convolution(node: Operation) -> list[Loop]:
    """Return the loops over images and features; pixels are not split."""
    left, right, result = re.split("_|->", shapes.attribute(node, "dim_labels"))
    images, features = left.index("b"), right.index("o")
    found = [
        Loop(node.inputs[0].dims[images], result.index("b"), {0: images}),
        Loop(node.inputs[1].dims[features], result.index("f"), {1: features}),
    ]
    grouped = node.source and {"feature_group_count", "batch_group_count"} & set(node.source.attributes)
    depth = Loop(node.inputs[0].dims[left.index("f")], -1, {0: left.index("f"), 1: right.index("i")})
    return found[: 0 if grouped else 2] if grouped else [*found, depth]


MULTIPLY_ADDS, VECTOR_OPERATIONS, MEMORY = 98_500.0, 6_000.0, 819.0
"""Of a TPU v5e, per nanosecond: multiply-adds of the matrix units, vector operations, bytes of memory."""


@dataclass(frozen=True)
class Strategy:
    """One way to split an operation.

    Attributes:
      split: the loop that each axis of the mesh splits, -1 for none.
      result: how the result lies afterwards.
      operands: how each operand must lie.
    """

    split: tuple[int, ...]
    result: Spec
    operands: tuple[Spec, ...]

    def __str__(self) -> str:
        """Return the loop that each axis splits."""
        return "replicated" if max(self.split) < 0 else "/".join("-" if i < 0 else f"loop {i}" for i in self.split)


@dataclass(frozen=True)
class ShardedProgram:
    """A program on a mesh.

    Attributes:
      graph: the costs, in nanoseconds.
      names: of the operations.
      strategies: of each operation.
      default: `(n,)` what a propagation from batch-split inputs gives.
    """

    graph: ShardingGraph
    names: list[str]
    strategies: list[list[Strategy]]
    default: NDArray[np.int64]


@lru_cache(maxsize=8)
def sharded(name: str, mesh: Mesh) -> ShardedProgram:
    """Return a program that ships, on a mesh. The memory limit is what the default needs.

    Results of constants and of what is computed from them cost nothing and are left out.

    Raises:
      UserError: there is no such program.
    """
    nodes = in_order(*Flattener(reader.read(lowered(name))).entry())
    kept = [i for i, node in enumerate(nodes) if node.kind is not Kind.FREE and node.shape.dtype != "tuple"]
    number = {old: new for new, old in enumerate(kept)}
    operations = [nodes[i] for i in kept]
    found = [strategies(node, loops(node), mesh) for node in operations]
    ends = [(number[o], number[i], place) for i in kept for place, o in enumerate(nodes[i].operands) if o in number]
    results = [np.array([strategy.result for strategy in of]) for of in found]
    costs = [_costs(*each, mesh) for each in zip(operations, found, results, strict=True)]
    tables = [_resharding(operations[a], results[a], found[b], place, mesh).ravel() for a, b, place in ends]
    usages = [_size(node) // mesh.share(result) for node, result in zip(operations, results, strict=True)]
    default = _propagated(operations, found, ends, costs, tables)
    edges = np.array([(a, b) for a, b, _ in ends], np.int64).reshape(-1, 2)
    of_graph = (name, costs, edges, tables, usages, _lives(operations, edges))
    unlimited = graph_of(*of_graph, None)
    needed = int(unlimited.memory(unlimited.usages[unlimited.firsts[:-1] + default]).max())
    return ShardedProgram(graph_of(*of_graph, needed), [node.name for node in operations], found, default)


def strategies(node: Operation, found: list[Loop], mesh: Mesh) -> list[Strategy]:
    """Return the ways to split an operation: each axis splits one loop, or none."""
    choices = [[-1, *(i for i, loop in enumerate(found) if loop.extent % n == 0)] for n in mesh.axes]
    result = []
    for split in itertools.product(*choices):
        counts = Counter(split)
        factors = {i: prod(n for n, j in zip(mesh.axes, split, strict=True) if j == i) for i in counts if i >= 0}
        if all(found[i].extent % factor == 0 for i, factor in factors.items()):
            spec = tuple(-1 if i < 0 else found[i].result for i in split)
            operands = (
                tuple(-1 if i < 0 else found[i].operands.get(place, -1) for i in split)
                for place in range(len(node.inputs))
            )
            result.append(Strategy(split, spec, tuple(operands)))
    return result


def _size(node: Operation) -> int:
    return int(shapes.elements(node.shape) * bytes_of(node.shape.dtype))


def _costs(node: Operation, found: list[Strategy], results: NDArray[np.int64], mesh: Mesh) -> NDArray[np.int64]:
    """Return the nanoseconds of the computation on one device, and of the sums over devices, by each strategy."""
    if node.kind is Kind.SOURCE:
        return np.zeros(len(found), np.int64)
    splits = np.array([strategy.split for strategy in found])
    product = float(np.prod(shapes.matrix(node)))
    size = sum(shapes.elements(shape) * bytes_of(shape.dtype) for shape in (node.shape, *node.inputs))
    alone = max(product / MULTIPLY_ADDS, shapes.operations(node) / VECTOR_OPERATIONS, size / MEMORY)
    sums = mesh.add_up(_size(node) / mesh.share(results), (splits >= 0) & (results < 0))
    return _whole(node.weight * (alone / mesh.share(splits) + sums))


def _resharding(
    producer: Operation, have: NDArray[np.int64], found: list[Strategy], place: int, mesh: Mesh
) -> NDArray[np.int64]:
    want = np.array([strategy.operands[place] for strategy in found])
    return _whole(producer.weight * mesh.reshard(_size(producer), have[:, None], want[None]))


def _whole(nanoseconds: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(nanoseconds).astype(np.int64)


def _lives(operations: list[Operation], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the `(n, 2)` steps in which each result is in memory: parameters always, results to the end."""
    n = len(operations)
    last = np.arange(n) + 1
    np.maximum.at(last, edges[:, 0], edges[:, 1] + 1)
    first = np.arange(n)
    always = np.array([node.opcode == "parameter" for node in operations])
    first[always], last[always | np.array([node.output for node in operations])] = 0, n
    return np.column_stack([first, last])


def _propagated(
    operations: list[Operation],
    found: list[list[Strategy]],
    ends: list[tuple[int, int, int]],
    costs: list[NDArray[np.int64]],
    tables: list[NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Return `(n,)` strategies: inputs split by the batch, weights replicated, and each operation as is cheapest then.

    Inputs are the parameters whose first dimension is that of the largest result.
    """
    computed = [node for node in operations if node.kind is not Kind.SOURCE and node.shape.dims]
    batch = max(computed, key=_size).shape.dims[0]
    incoming: dict[int, list[int]] = {}
    for e, (_, consumer, _) in enumerate(ends):
        incoming.setdefault(consumer, []).append(e)
    chosen = np.zeros(len(operations), np.int64)
    for i, node in enumerate(operations):
        if node.kind is Kind.SOURCE:
            by_batch = [k for k, s in enumerate(found[i]) if set(s.result) == {0}]
            chosen[i] = by_batch[0] if by_batch and node.shape.dims[0] == batch else 0
            continue
        total = costs[i].astype(np.float64)
        for e in incoming.get(i, []):
            total += tables[e].reshape(-1, len(found[i]))[chosen[ends[e][0]]]
        chosen[i] = int(total.argmin())
    return chosen
