"""The best tiles, loop order and buffers of one operator under a given capacity, by trying all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load

from .arrays import DIMS, OPERANDS
from .banks import waiting
from .groups import NORMAL, SLICE
from .memory import buffer, slice_size
from .state import STATE
from .traffic import traffic

compiled = compiled_for(__file__)

CHOICES = 1 + DIMS + 1 + OPERANDS
"""Length of a solution: bytes, the index of each tile, that of the order, and the level of each operand."""


@compiled(runtime=False, inline=False)
def room(head: int, end: int, op: int, capacity: int, at: int) -> int:
    """Return the bytes that an operator of a group may use, after what stays, the group's slices and pinned buffers."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    left = capacity
    for t in range(len(net.ranks)):
        if plan.resident[t] and plan.first[t] < end and plan.last[t] >= head:
            left -= waiting(t, at)
    for other in range(head, end):
        if plan.gone[other]:
            continue
        root = plan.root[net.tensors[other, net.reads[other]]]
        if plan.served[other, net.reads[other]] == SLICE and other <= op <= plan.last[root]:
            left -= slice_size(other, at)
        for x in range(net.reads[other] + 1 if other < op else 0):
            if not plan.moved[other, x, 2]:
                left -= buffer(other, x, at)
    return left


@compiled(runtime=False, inline=False)
def solve(op: int, capacity: int, step: int, best: NDArray, table: NDArray, count: NDArray, at: int) -> None:
    """Write into `best` the solution that moves least, as the plan serves the operands; no bytes but -1 if none fits.

    Args:
      step: tries every `step`-th tile, and as many times fewer orders.
      table: `(OPERANDS, DIMS + 1, 2)` int64 for bytes and buffers.
      count: `(DIMS,)` int64 for the indices of the tiles.
    """
    state: Any = load(at, STATE)
    net, columns, plan = state.net, state.columns, state.plan
    best[0] = -1
    orders = 1
    for i in range(2, net.tiles[op] + 1):
        orders *= i
    orders = min(orders, _orders(op, at))
    for d in range(DIMS):
        count[d] = 0
    while True:
        if _set_tiles(op, count, at):
            for order in range(0, orders, max(1, step * step - 1)):
                for d in range(DIMS):
                    plan.order[op, d] = columns.orders[op, order, d]
                _tabulate(op, table, at)
                _choose_levels(op, order, capacity, best, table, count, at)
        d = 0
        while d < DIMS:
            last = _last_tile(op, d, at)
            if count[d] < last:
                count[d] = min(last, count[d] + step)
                break
            count[d] = 0
            d += 1
        if d == DIMS:
            return


@compiled(runtime=False, inline=False)
def _orders(op: int, at: int) -> int:
    """Return how many orders of the loops an operator chooses from."""
    state: Any = load(at, STATE)
    orders = state.columns.orders
    found = 1
    while found < orders.shape[1]:
        same = True
        for d in range(DIMS):
            same = same and orders[op, found, d] == 0
        if same:
            return found
        found += 1
    return found


@compiled(runtime=False, inline=False)
def _last_tile(op: int, d: int, at: int) -> int:
    state: Any = load(at, STATE)
    column = state.columns.tile[op, d]
    if column < 0:
        return 0
    last = 0
    while state.columns.values[column, last] < state.net.extents[op, d]:
        last += 1
    return last


@compiled(runtime=False, inline=False)
def _set_tiles(op: int, count: NDArray, at: int) -> bool:
    """Set the tiles; return False if one is larger than necessary for its block."""
    state: Any = load(at, STATE)
    columns, plan = state.columns, state.plan
    for d in range(DIMS):
        column = columns.tile[op, d]
        if column >= 0:
            plan.tile[op, d] = columns.values[column, count[d]]
            if count[d] > 0 and columns.values[column, count[d] - 1] >= plan.blocks[op, d]:
                return False
    return True


@compiled(runtime=False, inline=False)
def _tabulate(op: int, table: NDArray, at: int) -> None:
    """Write bytes and buffer of each operand for each level."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    for x in range(net.reads[op] + 1):
        tensor = net.tensors[op, x]
        for level in range(net.tiles[op] + 1):
            plan.level[op, x] = level
            traffic(at, op, x, net.bytes[tensor], plan.moved[op, x])
            one, passes = plan.moved[op, x, 0], plan.moved[op, x, 1]
            table[x, level, 1] = buffer(op, x, at)
            table[x, level, 0] = 0
            if plan.served[op, x] == NORMAL:
                table[x, level, 0] = one * passes
                if x == net.reads[op] and passes > 1:
                    traffic(at, op, x, 4, plan.sums)
                    table[x, level, 0] = one + (passes - 1) * 2 * plan.sums[0]


@compiled(runtime=False, inline=False)
def _choose_levels(op: int, order: int, capacity: int, best: NDArray, table: NDArray, count: NDArray, at: int) -> None:
    """Improve `best` by the levels that move least and fit."""
    state: Any = load(at, STATE)
    net = state.net
    levels, operands = net.tiles[op] + 1, net.reads[op] + 1
    total = levels**operands
    for number in range(total):
        rest, moved, held = number, 0, 0
        for x in range(operands):
            moved += table[x, rest % levels, 0]
            held += table[x, rest % levels, 1]
            rest //= levels
        if held <= capacity and (best[0] < 0 or moved < best[0]):
            best[0], best[1 + DIMS], rest = moved, order, number
            for d in range(DIMS):
                best[1 + d] = count[d]
            for x in range(operands):
                best[2 + DIMS + x] = rest % levels
                rest //= levels


def workspace() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return `best`, `table` and `count`."""
    return np.zeros(CHOICES, np.int64), np.zeros((OPERANDS, DIMS + 1, 2), np.int64), np.zeros(DIMS, np.int64)
