"""Which operators of a candidate run block by block together, and how their operands are served."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load

from .arrays import DIMS
from .state import STATE

compiled = compiled_for(__file__)

LONGEST = 6
"""Most operators of a group."""

NORMAL, INSIDE, RESIDENT, SLICE = range(4)
"""How an operand is served: by DRAM, from a slice of the group, from a whole tensor that stays, as such a slice."""


@compiled(runtime=False, inline=False)
def tile(op: int, config: NDArray, at: int) -> None:
    """Set the tiles, loops and levels that a candidate wants for an operator that runs alone."""
    state: Any = load(at, STATE)
    net, columns, plan = state.net, state.columns, state.plan
    for d in range(DIMS):
        column = columns.tile[op, d]
        plan.tile[op, d] = columns.values[column, config[column]] if column >= 0 else net.extents[op, d]
        plan.order[op, d] = columns.orders[op, config[columns.order[op]], d]
        plan.blocks[op, d] = net.extents[op, d]
    for x in range(net.reads[op] + 1):
        plan.level[op, x] = config[columns.level[op, x]]
    plan.streams[op, 0], plan.streams[op, 1] = -1, -1


@compiled(runtime=False, inline=False)
def stream(head: int, config: NDArray, at: int) -> None:
    """Set the loops over blocks that the first operator of a group wants."""
    state: Any = load(at, STATE)
    net, columns, plan = state.net, state.columns, state.plan
    for i in range(2):
        d = columns.values[columns.stream[head, i], config[columns.stream[head, i]]]
        parts = columns.values[columns.block[head, i], config[columns.block[head, i]]]
        size = (net.extents[head, d] + parts - 1) // parts
        if size < net.extents[head, d] and plan.streams[head, 0] != d:
            plan.streams[head, i], plan.blocks[head, d] = d, size


@compiled(runtime=False, inline=False)
def open_group(head: int, op: int, at: int) -> None:
    """Note what an operator of a group makes, and which of its axes the group's loops cut."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    x = net.reads[op]
    tensor = net.tensors[op, x]
    root = plan.root[tensor]
    plan.made[root] = head
    for i in range(2):
        plan.sliced[root, i] = -1
        for a in range(net.ranks[tensor]):
            if plan.streams[op, i] >= 0 and net.dims[op, x, a] == plan.streams[op, i]:
                plan.sliced[root, i] = plan.axis[tensor, a]


@compiled(runtime=False, inline=False)
def joins(head: int, op: int, at: int) -> bool:
    """Let an operator join a group if each loop of the group is one of its own that may be tiled; else return False."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    found = False
    for x in range(net.reads[op]):
        tensor = net.tensors[op, x]
        if plan.made[plan.root[tensor]] == head:
            for i in range(2):
                axis = plan.sliced[plan.root[tensor], i]
                if axis >= 0 and not _follow(head, op, x, i, axis, found, at):
                    plan.streams[op, 0], plan.streams[op, 1] = -1, -1
                    return False
            found = True
    if found:
        for i in range(2):
            if plan.streams[op, i] >= 0:
                plan.blocks[op, plan.streams[op, i]] = plan.blocks[head, plan.streams[head, i]]
    return found


@compiled(runtime=False, inline=False)
def _follow(head: int, op: int, x: int, i: int, axis: int, again: bool, at: int) -> bool:
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    tensor = net.tensors[op, x]
    for a in range(net.ranks[tensor]):
        if plan.axis[tensor, a] == axis:
            d = net.dims[op, x, a]
            plain = net.strides[op, x, a] == 1 and net.windows[op, x, a] == 1 and net.pads[op, x, a] == 0
            if not plain or net.reduced[op, d] or not net.tiled[op, d] or (again and plan.streams[op, i] != d):
                return False
            plan.streams[op, i] = d
            return True
    return False


@compiled(runtime=False, inline=False)
def serve(head: int, end: int, at: int) -> None:
    """Set how the operands of a group from `head` to before `end` are served."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    for op in range(head, end):
        for x in range(0 if plan.gone[op] else net.reads[op] + 1):
            root, read = plan.root[net.tensors[op, x]], x < net.reads[op]
            plan.served[op, x] = NORMAL
            if plan.resident[root]:
                plan.served[op, x] = RESIDENT
            elif read and plan.made[root] == head:
                plan.served[op, x] = INSIDE
            elif not read and _read_inside(op, end, root, at):
                plan.served[op, x] = SLICE


@compiled(runtime=False, inline=False)
def _read_inside(op: int, end: int, root: int, at: int) -> bool:
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    for other in range(op + 1, end):
        if not plan.gone[other]:
            for x in range(net.reads[other]):
                if plan.root[net.tensors[other, x]] == root:
                    return True
    return False
