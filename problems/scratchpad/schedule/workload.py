"""A file of the MLSys 2026 contest: its reader, and the workload as arrays with the columns of its space.

The reader refuses what a file does not describe completely.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decomposition, Graph, Structure
from bbo_suite.files.reading import parse_json, read_bounded

from ...reading import explained, unique_keys
from ..model import interactions

LARGEST_FILE = 1 << 26
_WANTED = "a problem of the MLSys 2026 contest"
_LARGEST = 1 << 31
"""Largest number in a file; sums of products of such numbers stay far below the largest float."""
MOST_INPUTS = 16
_LISTS = ("widths", "heights", "inputs", "outputs", "base_costs", "op_types")
_NUMBERS = ("fast_memory_capacity", "slow_memory_bandwidth")
_KEYS = {*_LISTS, *_NUMBERS, "native_granularity"}


@dataclass(frozen=True)
class Workload:
    """A graph of operations, each with one result.

    Attributes:
      widths, heights: of each tensor, in elements.
      inputs: the tensors that each operation reads; a product reads its left operand first.
      outputs: the tensor that each operation writes.
      costs: of each operation for one native tile and the full depth of reduction, in units of time.
      products: whether each operation is a matrix product; otherwise it is pointwise.
      capacity: elements that fit into fast memory.
      bandwidth: elements per unit of time.
      native: width and height of the smallest tile that is computed.
      order: the operations in an order in which they can run: that of the file if possible.
    """

    widths: tuple[int, ...]
    heights: tuple[int, ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    costs: tuple[int, ...]
    products: tuple[bool, ...]
    capacity: int
    bandwidth: int
    native: tuple[int, int]
    order: tuple[int, ...]

    def digest(self) -> str:
        """Return a hash of the content."""
        fields = (self.widths, self.heights, self.inputs, self.outputs, self.costs, self.products)
        content = repr((*fields, self.capacity, self.bandwidth, self.native))
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def depth(self, op: int) -> int:
        """Return the depth of a product's reduction."""
        return self.widths[self.inputs[op][0]]


def read(path: Path) -> Workload:
    """Return the workload in a file, plain or gzipped.

    Raises:
      UserError: one sentence says what is wrong with it.
    """
    with explained(path, _WANTED):
        return _workload(parse_json(read_bounded(path, LARGEST_FILE), object_pairs_hook=unique_keys))


def _workload(content: Any) -> Workload:  # noqa: ANN401 - JSON
    if not isinstance(content, dict):
        raise ValueError(f"its JSON is not an object; it must be {_WANTED}")
    if missing := sorted(_KEYS - content.keys()):
        raise ValueError(f"it has no {missing[0]!r}; it must be {_WANTED}")
    if unknown := sorted(content.keys() - _KEYS):
        raise ValueError(f"{unknown[0][:40]!r} is not a key of the MLSys 2026 contest; drop it")
    widths, heights = (_numbers(content[key], key, 1) for key in ("widths", "heights"))
    _same_length(widths=widths, heights=heights)
    costs, kinds = _numbers(content["base_costs"], "base_costs", 0), _list(content["op_types"], "op_types")
    inputs, outputs = (_tensors(content[key], key, len(widths)) for key in ("inputs", "outputs"))
    _same_length(inputs=inputs, outputs=outputs, base_costs=costs, op_types=kinds)
    native = _numbers(content["native_granularity"], "native_granularity", 1)
    if len(native) != 2:
        raise ValueError(f"native_granularity has {len(native)} numbers, not a width and a height")
    capacity, bandwidth = (_numbers([content[key]], key, 1)[0] for key in _NUMBERS)
    written = _written(outputs)
    products = tuple(_is_product(op, kind) for op, kind in enumerate(kinds))
    for op in range(len(kinds)):
        _check_sizes(op, products[op], inputs[op], written[op], widths, heights)
        needed = len(inputs[op]) + (len(inputs[op]) > 1)  # one element of each; one operand may be overwritten
        if capacity < needed:
            raise ValueError(
                f"fast_memory_capacity is {capacity}, but operation {op} needs {needed} elements even with the smallest"
                " tile; give it more"
            )
    order = _order(inputs, written)
    return Workload(
        widths, heights, inputs, written, costs, products, capacity, bandwidth, (native[0], native[1]), order
    )


def _list(value: Any, key: str) -> list[Any]:  # noqa: ANN401 - JSON
    if not isinstance(value, list) or not value:
        raise ValueError(f"{key!r} is not a list with at least one entry")
    return value


def _numbers(value: Any, key: str, least: int) -> tuple[int, ...]:  # noqa: ANN401 - JSON
    numbers = _list(value, key)
    for place, number in enumerate(numbers):
        whole = isinstance(number, int | float) and not isinstance(number, bool) and number == number // 1
        if not whole or not least <= number <= _LARGEST:
            shown = json.dumps(number)[:40]
            raise ValueError(f"entry {place} of {key!r} is {shown}, not a whole number from {least} to {_LARGEST:,}")
    return tuple(map(int, numbers))


def _tensors(value: Any, key: str, count: int) -> tuple[tuple[int, ...], ...]:  # noqa: ANN401 - JSON
    found = tuple(_numbers(entry, f"{key}[{op}]", 0) for op, entry in enumerate(_list(value, key)))
    for op, tensors in enumerate(found):
        if max(tensors) >= count:
            raise ValueError(f"'{key}[{op}]' names tensor {max(tensors)}, but there are {count} tensors")
        if len(tensors) > MOST_INPUTS:
            raise ValueError(f"'{key}[{op}]' names {len(tensors)} tensors; at most {MOST_INPUTS} are supported")
    return found


def _same_length(**lists: Any) -> None:  # noqa: ANN401 - lists of anything
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"lists differ in length: {', '.join(f'{name} {n}' for name, n in lengths.items())}")


def _written(outputs: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    producers: dict[int, int] = {}
    for op, tensors in enumerate(outputs):
        if len(tensors) != 1:
            raise ValueError(f"operation {op} writes {len(tensors)} tensors; it must write one")
        if tensors[0] in producers:
            raise ValueError(f"operations {producers[tensors[0]]} and {op} both write tensor {tensors[0]}")
        producers[tensors[0]] = op
    return tuple(tensors[0] for tensors in outputs)


def _is_product(op: int, kind: Any) -> bool:  # noqa: ANN401 - JSON
    if kind not in ("MatMul", "Pointwise"):
        raise ValueError(f"entry {op} of 'op_types' is {json.dumps(kind)[:40]}, not MatMul or Pointwise")
    return bool(kind == "MatMul")


def _check_sizes(
    op: int,
    product: bool,
    inputs: tuple[int, ...],
    output: int,
    widths: tuple[int, ...],
    heights: tuple[int, ...],
) -> None:
    """Check a product; the contest's own files have pointwise operations on tensors of different sizes."""
    if not product:
        return
    if len(inputs) != 2:
        raise ValueError(f"operation {op} is a MatMul of {len(inputs)} tensors; it takes two")
    sizes = [(widths[t], heights[t]) for t in (*inputs, output)]
    (depth, rows), (columns, deep), result = sizes
    if depth != deep or result != (columns, rows):
        shown = ", ".join(f"{width} x {height}" for width, height in sizes)
        raise ValueError(f"the tensors of MatMul {op} do not fit together (width x height: {shown})")


def _order(inputs: tuple[tuple[int, ...], ...], outputs: tuple[int, ...]) -> tuple[int, ...]:
    producers = {tensor: op for op, tensor in enumerate(outputs)}
    before = [{producers[t] for t in tensors if t in producers} for tensors in inputs]
    if all(max(ops, default=-1) < op for op, ops in enumerate(before)):
        return tuple(range(len(inputs)))
    try:
        return tuple(TopologicalSorter(dict(enumerate(before))).static_order())
    except CycleError as error:
        cycle = " -> ".join(str(op) for op in error.args[1])
        raise ValueError(f"operations {cycle} wait for each other") from None


_COSTS = {  # of instances 1, 5, 9 and 13
    "eec4280d5a50ceb7": (322_008.0, 367_002.0, 576_716.8),
    "c69f9f1df80faa7d": (492_614.0, 508_644.0, 1_160_329.6),
    "7835e7f4820a75b3": (20_411_920.0, 20_731_121.0, 76_373_155.84),
    "a657c3495efd8841": (15_297_786.0, 22_156_739.0, 22_031_564.8),
}
_NAMES = ("TeamKorea, solver", "TeamKorea, agent", "curling-grad")

PUBLISHED = {graph: dict(zip(_NAMES, costs, strict=True)) for graph, costs in _COSTS.items()}
"""Costs by name. Readings of the rules differ from ours: curling-grad allows no tile larger than the native one."""
SOURCE = "write-ups of TeamKorea (a solver and an agent) and of curling-grad, third in its track"


ORDERS = ("nothing stays", "rows", "rows, snake", "columns", "columns, snake")
"""The orders in which the tiles of a group are visited. After the first, a tile loads all its inputs again."""


class Column(IntEnum):
    """The decisions about an operation, as places in a row of `Arrays.columns`."""

    WIDTH = 0
    HEIGHT = 1
    DEPTH = 2
    ORDER = 3
    KEEP = 4


class Arrays(NamedTuple):
    """Operations are numbered in the order in which they can run.

    Attributes:
      sizes: `(tensors, 2)` width and height.
      starts, inputs: operation o reads the tensors `inputs[starts[o]:starts[o + 1]]`.
      fuse: for each of `inputs`, the column that decides whether its producer joins, -1 if nothing produces it.
      outputs: `(ops,)` the tensor that each writes.
      producers: `(tensors,)` the operation that writes each, -1 for an input of the program.
      final: `(ops,)` whether nothing reads its result.
      costs: `(ops,)` for one native tile.
      depths: `(ops,)` the depth of a product, 0 for a pointwise operation.
      columns: `(ops, 5)` the columns of each operation, see `Column`; -1 if there is none.
      values: `(d, most)` what each index of a column stands for.
      hardware: capacity, bandwidth, native width and native height.
    """

    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    inputs: NDArray[np.int64]
    fuse: NDArray[np.int64]
    outputs: NDArray[np.int64]
    producers: NDArray[np.int64]
    final: NDArray[np.bool_]
    costs: NDArray[np.float64]
    depths: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.int64]
    hardware: NDArray[np.int64]


def arrays(workload: Workload) -> tuple[Arrays, list[str], list[Sequence[int]], list[int]]:
    """Return the arrays, and the name, values and operation (by its place) of each column."""
    names: list[str] = []
    values: list[Sequence[int]] = []
    owners: list[int] = []

    def add(place: int, what: str, options: Sequence[int]) -> int:
        names.append(f"operation {workload.order[place]}: {what}")
        values.append(options)
        owners.append(place)
        return len(names) - 1

    order = workload.order
    producers = np.full(len(workload.widths), -1, np.int64)
    producers[[workload.outputs[op] for op in order]] = np.arange(len(order))
    read = {tensor for tensors in workload.inputs for tensor in tensors}
    columns = np.full((len(order), len(Column)), -1, np.int64)
    fuse: list[int] = []
    deepest: list[int] = []  # the largest depth above each operation
    for place, op in enumerate(order):
        tensor = workload.outputs[op]
        above = [deepest[producers[t]] for t in workload.inputs[op] if producers[t] >= 0]
        deepest.append(workload.depth(op) if workload.products[op] else max(above, default=0))
        columns[place, Column.WIDTH] = add(place, "width", tile_sizes(workload.widths[tensor]))
        columns[place, Column.HEIGHT] = add(place, "height", tile_sizes(workload.heights[tensor]))
        if deepest[-1]:
            columns[place, Column.DEPTH] = add(place, "depth", tile_sizes(deepest[-1]))
        columns[place, Column.ORDER] = add(place, "order", list(range(len(ORDERS))))
        if tensor in read:
            columns[place, Column.KEEP] = add(place, "keep its result", [0, 1])
        for t in workload.inputs[op]:
            made = int(producers[t])
            fuse.append(-1 if made < 0 else add(place, f"take in operation {order[made]}", [0, 1]))
    table = np.zeros((len(values), max(map(len, values))), np.int64)
    for column, options in enumerate(values):
        table[column, : len(options)] = options
    found = Arrays(
        sizes=np.array([workload.widths, workload.heights], np.int64).T.copy(),
        starts=np.cumsum([0, *(len(workload.inputs[op]) for op in order)]),
        inputs=np.array([t for op in order for t in workload.inputs[op]], np.int64),
        fuse=np.array(fuse, np.int64),
        outputs=np.array([workload.outputs[op] for op in order], np.int64),
        producers=producers,
        final=np.array([workload.outputs[op] not in read for op in order]),
        costs=np.array([workload.costs[op] for op in order], np.float64),
        depths=np.array([workload.depth(op) if workload.products[op] else 0 for op in order], np.int64),
        columns=columns,
        values=table,
        hardware=np.array([workload.capacity, workload.bandwidth, *workload.native], np.int64),
    )
    return found, names, values, owners


@cache
def tile_sizes(extent: int) -> tuple[int, ...]:
    """Return the sizes that divide an extent into 1, 2, 3, 4, 6, 8, 12, 16, ... tiles."""
    counts = [many << i for i in range(extent.bit_length()) for many in (2, 3) if many << i < 2 * extent]
    return tuple(sorted({-(-extent // count) for count in (1, *counts)}))


_WHAT = ("width", "height", "depth", "order", "keep", "take in")
_NODE = ("log width", "log height", "log depth", "log cost")


def structure(graph: Arrays, owners: list[int], parts: Decomposition) -> Structure:
    """Return the structure of the space.

    Args:
      owners: the operation that each column belongs to.
    """
    edges, deciders = _edges(graph)
    d = len(owners)
    members: list[set[int]] = [set() for _ in graph.outputs]
    for column, op in enumerate(owners):
        members[op].add(column)
    for (producer, _), column in zip(edges, deciders, strict=True):
        members[producer].add(column)
    starts, neighbours = interactions(members, d)
    nodes = _nodes(graph)
    what, edge = np.zeros((d, len(_WHAT)), np.float32), np.full(d, -1, np.int32)
    for kind in range(5):
        chosen = graph.columns[:, kind]
        what[chosen[chosen >= 0], kind] = 1
    what[deciders, 5], edge[deciders] = 1, np.arange(len(deciders))
    return Structure(
        starts=starts,
        neighbours=neighbours,
        features=np.hstack([what, nodes[owners]]),
        feature_names=(*_WHAT, *_NODE),
        graph=Graph(nodes, _NODE, np.array(edges, np.int32).reshape(-1, 2)),
        edges=edge,
        nodes=np.where(edge < 0, np.array(owners), -1).astype(np.int32),
        parts=parts,
    )


def _edges(graph: Arrays) -> tuple[list[tuple[int, int]], list[int]]:
    """Return producer and consumer of each edge, and the column that decides it."""
    consumers = np.repeat(np.arange(len(graph.outputs)), np.diff(graph.starts))
    inside = np.flatnonzero(graph.fuse >= 0)
    producers = graph.producers[graph.inputs[inside]]
    pairs = [(int(a), int(b)) for a, b in zip(producers, consumers[inside], strict=True)]
    return pairs, graph.fuse[inside].tolist()


def _nodes(graph: Arrays) -> NDArray[np.float32]:
    sizes = graph.sizes[graph.outputs]
    return np.log1p(np.column_stack([sizes, graph.depths, graph.costs])).astype(np.float32)
