"""Which tensors of a candidate are one, how they are stored, and which shall stay in the scratchpad."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load

from .arrays import AXES
from .graph import Role
from .state import STATE

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
