"""Which tensors of a candidate are one and where they lie; which operators run together; how operands are served."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load

from .networks import Role
from .space import AXES, DIMS, STATE

compiled = compiled_for(__file__)

INPUT, OUTPUT = int(Role.INPUT), int(Role.OUTPUT)
WEIGHT = int(Role.WEIGHT)


@compiled(runtime=False, inline=False)
def merge(config: NDArray, at: int) -> None:
    """Eliminate operators that only move data: what they write becomes the tensor that they read, turned."""
    state: Any = load(at, STATE)
    net, columns, plan = state.net, state.columns, state.plan
    for t in range(len(net.ranks)):
        plan.root[t], plan.output[t] = t, net.roles[t] == OUTPUT
        for a in range(AXES):
            plan.axis[t, a] = a
    for op in range(len(net.moves)):
        plan.gone[op] = False
        wanted = columns.eliminate[op] >= 0 and config[columns.eliminate[op]] == 1
        source, result = net.tensors[op, 0], net.tensors[op, 1]
        root = plan.root[source]
        fixed = net.roles[root] == INPUT or plan.output[root]
        if not wanted or (fixed and net.roles[result] == OUTPUT):
            continue
        plan.gone[op] = True
        plan.root[result] = root
        plan.output[root] |= net.roles[result] == OUTPUT
        for a in range(net.ranks[result]):
            for b in range(net.ranks[source]):
                if net.dims[op, 1, a] == net.dims[op, 0, b]:
                    plan.axis[result, a] = plan.axis[source, b]


@compiled(runtime=False, inline=False)
def store(config: NDArray, at: int) -> None:
    """Set the storage order of each root, and what it means for the tensors that became part of it."""
    state: Any = load(at, STATE)
    net, columns, plan = state.net, state.columns, state.plan
    for t in range(len(net.ranks)):
        chosen = config[columns.store[t]] if columns.store[t] >= 0 else 0
        for place in range(AXES):
            plan.fast[t, place] = columns.stores[net.ranks[t], chosen, place]
    for t in range(len(net.ranks)):  # the network's outputs are stored row by row
        if plan.root[t] != t and net.roles[t] == OUTPUT:
            for place in range(net.ranks[t]):
                plan.fast[plan.root[t], place] = plan.axis[t, net.ranks[t] - 1 - place]
    for t in range(len(net.ranks)):
        if plan.root[t] != t:
            for place in range(net.ranks[t]):
                for a in range(net.ranks[t]):
                    if plan.axis[t, a] == plan.fast[plan.root[t], place]:
                        plan.fast[t, place] = a


@compiled(runtime=False, inline=False)
def live(config: NDArray, at: int) -> None:
    """Set who uses each root first and last, and which ones shall stay in the scratchpad in between."""
    state: Any = load(at, STATE)
    net, columns, plan = state.net, state.columns, state.plan
    for t in range(len(net.ranks)):
        plan.first[t], plan.last[t], plan.made[t], plan.resident[t] = len(net.moves), -1, -1, False
    for op in range(len(net.moves)):
        if not plan.gone[op]:
            for x in range(net.reads[op] + 1):
                root = plan.root[net.tensors[op, x]]
                plan.first[root] = min(plan.first[root], op)
                plan.last[root] = op
    for t in range(len(net.ranks)):
        if plan.root[t] == t and columns.resident[t] >= 0 and plan.first[t] < plan.last[t]:
            plan.resident[t] = config[columns.resident[t]] == 1


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
