"""The tile of a group: what is in fast memory at a time, and the largest tile that fits."""

from __future__ import annotations

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .arrays import Arrays, Column
from .group import ALL_DEPTH, ALL_TILE, DEPTH_ALL, DEPTH_TILE, TILE, TILE_ALL, TILE_DEPTH, Group

compiled = compiled_for(__file__)


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
def working_set(graph: Arrays, group: Group, kept: int, keeps: bool) -> float:
    """Return the elements in fast memory.

    Args:
      kept: the tensor that is there in full from the group before, or -1.
      keeps: whether the result stays there in full.
    """
    result = graph.outputs[group.ops[0]]
    whole = float(graph.sizes[result, 0]) * graph.sizes[result, 1]
    total = whole if keeps else elements(TILE, result, graph, group)
    if kept < 0 and not keeps and _in_place(graph, group):
        return total
    if kept >= 0:
        total += float(graph.sizes[kept, 0]) * graph.sizes[kept, 1]
    for place in range(group.counts[1]):
        if group.tensors[place] != kept:
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
