"""One group of operations: which ones it computes, and what it loads.

The rules are those of the contest's text: every operation of a group costs its base cost for each native tile of the
group's result. Where the text is silent, the reading is the one under which a group costs more: a tile at the border
counts as a whole one, and an operation whose result would have to wait in full in fast memory does not join.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .arrays import Arrays
from .workload import MOST_INPUTS

compiled = compiled_for(__file__)

MOST = 32
"""Most operations of a group."""

# What a slice of a tensor covers, in rows and in columns: of the tile, of a step of the reduction, or all.
TILE, TILE_DEPTH, DEPTH_TILE, TILE_ALL, ALL_DEPTH, DEPTH_ALL, ALL_TILE = range(7)


class Group(NamedTuple):
    """The group that is being computed.

    Attributes:
      counts: numbers of operations and of slices, and the depth of the reduction (0: none).
      ops: the operations, first the one whose result leaves.
      roles: which slice of its result each computes.
      tensors, slices: the tensors that are loaded, and which slice of each.
      tile: `(4,)` width, height, depth of a step, and order of the tiles.
    """

    counts: NDArray[np.int64]
    ops: NDArray[np.int64]
    roles: NDArray[np.int64]
    tensors: NDArray[np.int64]
    slices: NDArray[np.int64]
    tile: NDArray[np.int64]


def new_group() -> Group:
    """Return an empty group."""
    lengths = (3, MOST, MOST, MOST * MOST_INPUTS, MOST * MOST_INPUTS, 4)
    return Group(*(np.zeros(length, np.int64) for length in lengths))


@compiled()
def gather(root: int, config: NDArray, graph: Arrays, group: Group, most: int) -> None:
    """Collect the operations that join the group of `root`, at most `most`, and the slices that it loads."""
    group.counts[0], group.counts[1], group.counts[2] = 1, 0, graph.depths[root]
    group.ops[0], group.roles[0] = root, TILE
    place = 0
    while place < group.counts[0]:
        op = group.ops[place]
        for i in range(graph.starts[op], graph.starts[op + 1]):
            product, tensor = graph.depths[op] > 0, graph.inputs[i]
            role = _operand(group.roles[place], product, i == graph.starts[op])
            wanted = graph.fuse[i] >= 0 and config[graph.fuse[i]] == 1
            wanted = wanted and (product or _same_size(tensor, graph.outputs[op], graph))  # they share the grid
            if not (wanted and _joins(graph.producers[tensor], role, graph, group, most)):
                _load(tensor, role, group)
        place += 1


@compiled(runtime=False)
def _same_size(tensor: int, other: int, graph: Arrays) -> bool:
    return graph.sizes[tensor, 0] == graph.sizes[other, 0] and graph.sizes[tensor, 1] == graph.sizes[other, 1]


@compiled(runtime=False)
def _operand(role: int, product: bool, left: bool) -> int:
    """Return which slice of an operand gives a slice of the result."""
    if not product:
        return role
    if role == TILE:
        return TILE_DEPTH if left else DEPTH_TILE
    if role == TILE_DEPTH:
        return TILE_ALL if left else ALL_DEPTH
    return DEPTH_ALL if left else ALL_TILE


@compiled(runtime=False)
def _joins(op: int, role: int, graph: Arrays, group: Group, most: int) -> bool:
    """Add an operation to the group if it is not there; return False if it cannot be."""
    for place in range(group.counts[0]):
        if group.ops[place] == op:
            return group.roles[place] == role
    depth = graph.depths[op] if role == TILE else 0
    other = depth > 0 and group.counts[2] > 0 and depth != group.counts[2]  # all tiles are reduced in the same steps
    if role > DEPTH_TILE or other or group.counts[0] >= most:
        return False
    group.counts[2] = max(group.counts[2], depth)
    group.ops[group.counts[0]], group.roles[group.counts[0]] = op, role
    group.counts[0] += 1
    return True


@compiled(runtime=False)
def _load(tensor: int, role: int, group: Group) -> None:
    for place in range(group.counts[1]):
        if group.tensors[place] == tensor and group.slices[place] == role:
            return
    group.tensors[group.counts[1]], group.slices[group.counts[1]] = tensor, role
    group.counts[1] += 1
