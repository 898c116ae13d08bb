"""A workload and the columns of its space as arrays, for compiled code, and which of its decisions interact."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decomposition, Graph, Structure

from ..model import interactions
from .workload import Workload

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
