"""Which dimension of each tensor lies across the banks of the scratchpad, and what lies otherwise than its user needs.

A scratchpad of many banks holds one dimension of a tensor across them, as the array of multipliers reads it: a product
needs both inputs across a dimension that it sums over, any other operator all its operands across the same dimension.
What comes from DRAM is laid as its reader needs it. A tensor that waits in the scratchpad lies in one way only.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load

from .arrays import AXES, DIMS
from .state import STATE
from .traffic import rounded

compiled = compiled_for(__file__)


@compiled(runtime=False, inline=False)
def lay(config: NDArray, at: int) -> None:
    """Set the axis of each operand that lies across the banks, and whether the candidate lays it otherwise."""
    state: Any = load(at, STATE)
    net, columns, plan = state.net, state.columns, state.plan
    if state.limits[2] == 0:
        return
    for t in range(len(net.ranks)):
        plan.bank[t] = config[columns.bank[t]] if columns.bank[t] >= 0 else -1
    for op in range(len(net.moves)):
        product = _multiplies(op, at)
        working = -1 if product else _working(op, at)
        for x in range(net.reads[op] + 1):
            read, chosen = x < net.reads[op], _chosen(op, x, at)
            plan.across[op, x] = -1
            for a in range(net.ranks[net.tensors[op, x]]):
                d = net.dims[op, x, a]
                suits = net.tiled[op, d] and net.reduced[op, d] == read if product else d == working
                if suits and (plan.across[op, x] < 0 or a == chosen):
                    plan.across[op, x] = a
            plan.clash[op, x] = not plan.gone[op] and chosen >= 0 and plan.across[op, x] != chosen


@compiled(runtime=False, inline=False)
def _multiplies(op: int, at: int) -> bool:
    """True if an operator sums over a dimension that may be cut: a product or a convolution."""
    state: Any = load(at, STATE)
    net = state.net
    found = False
    for d in range(DIMS):
        found = found or (net.reduced[op, d] and net.tiled[op, d])
    return found


@compiled(runtime=False, inline=False)
def _working(op: int, at: int) -> int:
    """Return the dimension across which an operator works that is no product: its result's, or else an operand's."""
    state: Any = load(at, STATE)
    net = state.net
    for back in range(net.reads[op] + 1):
        x = net.reads[op] - back
        axis = _chosen(op, x, at)
        if axis >= 0 and net.tiled[op, net.dims[op, x, axis]] and not net.reduced[op, net.dims[op, x, axis]]:
            return net.dims[op, x, axis]
    for d in range(DIMS):
        if net.tiled[op, d] and not net.reduced[op, d]:
            return d
    return -1


@compiled(runtime=False, inline=False)
def _chosen(op: int, x: int, at: int) -> int:
    """Return the axis of an operand that the candidate lays across the banks; -1 if it never waits."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    tensor = net.tensors[op, x]
    bank = plan.bank[plan.root[tensor]]
    for a in range(net.ranks[tensor] if bank >= 0 else 0):
        if plan.axis[tensor, a] == bank:
            return a
    return -1


@compiled(runtime=False, inline=False)
def waiting(tensor: int, at: int) -> int:
    """Return the bytes that a whole tensor takes in the scratchpad."""
    state: Any = load(at, STATE)
    net, plan, limits = state.net, state.plan, state.limits
    size = net.bytes[tensor]
    for a in range(AXES):
        size *= rounded(net.sizes[tensor, a], limits[2]) if plan.bank[tensor] == a else net.sizes[tensor, a]
    return rounded(size, limits[1])
