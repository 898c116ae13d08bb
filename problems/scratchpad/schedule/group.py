"""One group of operations: which ones it computes and what it loads, its tile, and its time.

The rules are those of the contest's text: every operation of a group costs its base cost for each native tile of the
group's result. Where the text is silent, the reading is the one under which a group costs more: a tile at the border
counts as a whole one, and an operation whose result would have to wait in full in fast memory does not join.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, mix

from .workload import MOST_INPUTS, Arrays, Column

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


@compiled(runtime=False)
def elements(role: int, tensor: int, graph: Arrays, group: Group) -> float:
    """Return the elements of a slice; a tensor that is smaller than the tile is loaded whole."""
    width, height, depth = group.tile[0], group.tile[1], group.tile[2]
    rows, columns = graph.sizes[tensor, 1], graph.sizes[tensor, 0]
    if role in (TILE, TILE_DEPTH, TILE_ALL):
        rows = min(rows, height)
    elif role in (DEPTH_TILE, DEPTH_ALL):
        rows = min(rows, depth)
    if role in (TILE, DEPTH_TILE, ALL_TILE):
        columns = min(columns, width)
    elif role in (TILE_DEPTH, ALL_DEPTH):
        columns = min(columns, depth)
    return float(rows) * columns


@compiled()
def working_set(graph: Arrays, group: Group, retained: int, retains: bool) -> float:
    """Return the elements in fast memory.

    Args:
      retained: the tensor that is there in full from the group before, or -1.
      retains: whether the result stays there in full.
    """
    result = graph.outputs[group.ops[0]]
    whole = float(graph.sizes[result, 0]) * graph.sizes[result, 1]
    total = whole if retains else elements(TILE, result, graph, group)
    if retained < 0 and not retains and _in_place(graph, group):
        return total
    if retained >= 0:
        total += float(graph.sizes[retained, 0]) * graph.sizes[retained, 1]
    for place in range(group.counts[1]):
        if group.tensors[place] != retained:
            total += elements(group.slices[place], group.tensors[place], graph, group)
    return total


@compiled(runtime=False)
def _in_place(graph: Arrays, group: Group) -> bool:
    """True for a chain of pointwise operations of one tensor: its result takes the place of what was loaded."""
    if group.counts[1] > 1 or group.slices[0] != TILE:
        return False
    for place in range(group.counts[0]):
        if graph.starts[group.ops[place] + 1] - graph.starts[group.ops[place]] > 1:
            return False
    return True


@compiled(runtime=False)
def pieces(extent: int, size: int) -> int:
    """Return how many pieces of a size cover an extent."""
    return (extent + size - 1) // size


@compiled()
def fit_tile(config: NDArray, graph: Arrays, group: Group) -> bool:
    """Set the tile that a candidate wants, or one that fits: first the steps get shorter, then the longer side.

    Returns:
      False if not even the smallest tile fits.
    """
    columns = graph.columns[group.ops[0]]
    width, height = config[columns[Column.WIDTH]], config[columns[Column.HEIGHT]]
    depth = config[columns[Column.DEPTH]] if columns[Column.DEPTH] >= 0 else 0
    group.tile[3] = config[columns[Column.ORDER]]
    while True:
        set_tile(graph, group, width, height, depth)
        if working_set(graph, group, -1, False) <= graph.hardware[0]:
            return True
        if depth > 0:
            depth -= 1
        elif width > 0 and (height == 0 or group.tile[0] >= group.tile[1]):
            width -= 1
        elif height > 0:
            height -= 1
        else:
            return False


@compiled(runtime=False)
def set_tile(graph: Arrays, group: Group, width: int, height: int, depth: int) -> None:
    """Set the tile by the indices of its three sizes."""
    columns = graph.columns[group.ops[0]]
    group.tile[0] = graph.values[columns[Column.WIDTH], width]
    group.tile[1] = graph.values[columns[Column.HEIGHT], height]
    deep = graph.values[columns[Column.DEPTH], depth] if columns[Column.DEPTH] >= 0 else 1
    group.tile[2] = min(deep, group.counts[2]) if group.counts[2] else 1


@compiled()
def latency(graph: Arrays, group: Group, retained: int, retains: bool) -> float:
    """Return the time of a group; arguments as of `working_set`."""
    steps = pieces(group.counts[2], group.tile[2]) if group.counts[2] else 1
    native = float(pieces(group.tile[0], graph.hardware[2])) * pieces(group.tile[1], graph.hardware[3])
    each, last = 0.0, 0.0  # the work in each step of the reduction, and what waits for the last one
    for place in range(group.counts[0]):
        op = group.ops[place]
        if group.roles[place] == TILE and graph.depths[op] == 0:
            last += graph.costs[op] * native
        else:
            each += graph.costs[op] * native / steps
    result = graph.outputs[group.ops[0]]
    written = 0.0 if retains else elements(TILE, result, graph, group)
    across = pieces(graph.sizes[result, 0], group.tile[0])
    down = pieces(graph.sizes[result, 1], group.tile[1])
    order, total = group.tile[3], 0.0
    by_rows = order < 3
    lines, length = (down, across) if by_rows else (across, down)
    back = order in (1, 3) and length > 1  # the next line starts where this one did, not where it ended
    for kind in range(3):  # the first tile, one after a move along a line, one at the start of another line
        count = 1.0 if kind == 0 else lines * (length - 1.0) if kind == 1 else lines - 1.0
        if order == 0:
            count = float(lines) * length if kind == 0 else 0.0
        if count > 0:
            moves_down = kind == 0 or by_rows == (kind == 2) or (back and kind == 2)
            moves_across = kind == 0 or by_rows == (kind == 1) or (back and kind == 2)
            total += count * _tile_time(
                graph, group, retained, steps, each, last, written, kind, moves_down, moves_across
            )
    return total


@compiled(runtime=False)
def _tile_time(
    graph: Arrays,
    group: Group,
    retained: int,
    steps: int,
    each: float,
    last: float,
    written: float,
    kind: int,
    down: bool,
    across: bool,
) -> float:
    """Return the time of a tile after a move down, across, or both; of kind 0, the first tile, which loads all."""
    start, later = 0.0, 0.0
    for place in range(group.counts[1]):
        role, tensor = group.slices[place], group.tensors[place]
        if tensor == retained:
            continue
        count = elements(role, tensor, graph, group)
        by_depth = steps > 1 and role in (TILE_DEPTH, DEPTH_TILE, ALL_DEPTH, DEPTH_ALL)
        by_row, by_column = role in (TILE, TILE_DEPTH, TILE_ALL), role in (TILE, DEPTH_TILE, ALL_TILE)
        if by_depth:
            later += count
        if kind == 0 or by_depth or (down and by_row) or (across and by_column):
            start += count
    bandwidth = float(graph.hardware[1])
    if steps == 1:
        return max(each + last, (start + written) / bandwidth)
    middle = (steps - 2) * max(each, later / bandwidth)
    return max(each, start / bandwidth) + middle + max(each + last, (later + written) / bandwidth)


@compiled(runtime=False)
def key(graph: Arrays, group: Group, retained: int, retains: bool) -> np.uint64:
    """Return a hash of all that the time of a group depends on."""
    result = graph.outputs[group.ops[0]]
    mixed = mix(np.uint64(group.counts[2]), np.uint64(retains))
    for i in range(4):
        mixed = mix(mixed, np.uint64(group.tile[i]))
    for side in range(2):
        mixed = mix(mixed, np.uint64(graph.sizes[result, side]))
    for place in range(group.counts[0]):
        op = group.ops[place]
        mixed = mix(mix(mixed, np.uint64(graph.costs[op])), np.uint64(2 * group.roles[place] + (graph.depths[op] > 0)))
        mixed = mix(
            mix(mixed, np.uint64(graph.sizes[graph.outputs[op], 0])), np.uint64(graph.sizes[graph.outputs[op], 1])
        )
    for place in range(group.counts[1]):
        tensor = group.tensors[place]
        mixed = mix(mixed, np.uint64(8 + group.slices[place] + 8 * (tensor == retained)))
        mixed = mix(mix(mixed, np.uint64(graph.sizes[tensor, 0])), np.uint64(graph.sizes[tensor, 1]))
    return mixed
