"""The scratchpad that operands, slices and whole tensors take."""

from __future__ import annotations

from typing import Any

from bbo_suite.compiled import compiled_for, load

from .arrays import DIMS
from .banks import waiting
from .groups import INSIDE, NORMAL, RESIDENT, SLICE
from .state import STATE
from .traffic import rounded, traffic

compiled = compiled_for(__file__)


@compiled(runtime=False, inline=False)
def measure(op: int, at: int) -> None:
    """Set what the operands of an operator move."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    for x in range(net.reads[op] + 1):
        traffic(at, op, x, net.bytes[net.tensors[op, x]], plan.moved[op, x])


@compiled(runtime=False, inline=False)
def sums(op: int, at: int) -> bool:
    """True if an operator adds up; its result then takes 4 bytes for each element until it is complete."""
    state: Any = load(at, STATE)
    net = state.net
    adds = False
    for d in range(DIMS):
        adds = adds or net.reduced[op, d]
    return adds


@compiled(runtime=False, inline=False)
def buffer(op: int, x: int, at: int) -> int:
    """Return the bytes of an operand's buffer: two boxes if it changes, so that one is moved while one is used."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    result, served = x == net.reads[op], plan.served[op, x]
    adds = result and sums(op, at)
    if served in (INSIDE, SLICE) or (served == RESIDENT and not adds):
        return 0
    size = 4 if adds else net.bytes[net.tensors[op, x]]
    return plan.moved[op, x, 3] * size * (1 + (plan.moved[op, x, 2] and served == NORMAL))


@compiled(runtime=False, inline=False)
def slice_size(op: int, at: int) -> int:
    """Return the bytes of the slice of a result that a group holds."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    x = net.reads[op]
    tensor = net.tensors[op, x]
    size = 4 if sums(op, at) else net.bytes[tensor]
    for a in range(net.ranks[tensor]):
        length = plan.blocks[op, net.dims[op, x, a]]
        size *= rounded(length, state.limits[2]) if plan.bank[plan.root[tensor]] == plan.axis[tensor, a] else length
    return size


@compiled(runtime=False, inline=False)
def needed(head: int, end: int, at: int) -> int:
    """Return the bytes of scratchpad that a group needs at most at a time."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    staying, pinned, most = 0, 0, 0
    for t in range(len(net.ranks)):
        if plan.resident[t] and plan.first[t] < end and plan.last[t] >= head:
            staying += waiting(t, at)
    for op in range(head, end):
        if plan.gone[op]:
            continue
        moving = 0
        for x in range(net.reads[op] + 1):
            size = buffer(op, x, at)
            if plan.moved[op, x, 2]:
                moving += size
            else:
                pinned += size
        for other in range(head, op + 1):
            held = not plan.gone[other] and plan.served[other, net.reads[other]] == SLICE
            if held and _last_inside(other, end, at) >= op:
                moving += slice_size(other, at)
        most = max(most, moving)
    return staying + pinned + most


@compiled(runtime=False, inline=False)
def _last_inside(op: int, end: int, at: int) -> int:
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    root = plan.root[net.tensors[op, net.reads[op]]]
    return min(plan.last[root], end - 1)
