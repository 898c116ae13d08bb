"""The time of a group: in each step the larger of the time of its work and that of what it moves."""

from __future__ import annotations

import numpy as np

from bbo_suite.compiled import compiled_for, mix

from .arrays import Arrays
from .group import ALL_DEPTH, ALL_TILE, DEPTH_ALL, DEPTH_TILE, TILE, TILE_ALL, TILE_DEPTH, Group
from .tile import elements, pieces

compiled = compiled_for(__file__)


@compiled()
def latency(graph: Arrays, group: Group, kept: int, keeps: bool) -> float:
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
    written = 0.0 if keeps else elements(TILE, result, graph, group)
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
            total += count * _tile_time(graph, group, kept, steps, each, last, written, kind, moves_down, moves_across)
    return total


@compiled(runtime=False)
def _tile_time(
    graph: Arrays,
    group: Group,
    kept: int,
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
        if tensor == kept:
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
def key(graph: Arrays, group: Group, kept: int, keeps: bool) -> np.uint64:
    """Return a hash of all that the time of a group depends on."""
    result = graph.outputs[group.ops[0]]
    mixed = mix(np.uint64(group.counts[2]), np.uint64(keeps))
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
        mixed = mix(mixed, np.uint64(8 + group.slices[place] + 8 * (tensor == kept)))
        mixed = mix(mix(mixed, np.uint64(graph.sizes[tensor, 0])), np.uint64(graph.sizes[tensor, 1]))
    return mixed
