"""The bytes that candidates and their groups move."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load, mix

from .decode import decode
from .groups import INPUT, NORMAL, RESIDENT, SLICE, WEIGHT
from .memory import traffic, whole
from .space import AXES, DIMS
from .state import STATE

compiled = compiled_for(__file__)

FEATURES = ("operators", "result bytes", "operand bytes", "blocks", "resident operands", "work")


@compiled(runtime=False, inline=False)
def group_bytes(head: int, at: int) -> int:
    """Return the bytes that a group moves."""
    state: Any = load(at, STATE)
    plan = state.plan
    total = 0
    for op in range(head, plan.ends[head]):
        if not plan.gone[op]:
            total += moved_by(op, plan.ends[head], at)
    return total


@compiled(runtime=False, inline=False)
def moved_by(op: int, end: int, at: int) -> int:
    """Return the bytes that an operator of a group that ends before `end` moves between DRAM and the scratchpad."""
    state: Any = load(at, STATE)
    net, plan, granule = state.net, state.plan, state.limits[1]
    total = 0
    for x in range(net.reads[op] + 1):
        tensor = net.tensors[op, x]
        root, served, result = plan.root[tensor], plan.served[op, x], x == net.reads[op]
        one, passes = plan.moved[op, x, 0], plan.moved[op, x, 1]
        if served != NORMAL and plan.clash[op, x]:  # through DRAM, to lie otherwise
            total += 2 * whole(net, root, granule)
        if served == NORMAL and not result:
            total += one * passes
        elif served == NORMAL:
            total += one
            if passes > 1:  # sums that are not complete leave and come back
                traffic(at, op, x, 4, plan.sums)
                total += (passes - 1) * 2 * plan.sums[0]
        elif served == SLICE and (plan.output[root] or plan.last[root] >= end):
            total += whole(net, root, granule)
        elif served == RESIDENT:
            brought = plan.first[root] == op and net.roles[root] in (INPUT, WEIGHT)
            total += whole(net, root, granule) * (brought or (result and plan.output[root]))
    return total


@compiled(runtime=False, inline=False)
def evaluate(configs: NDArray, values: NDArray, at: int) -> None:
    """Write the `(n,)` bytes that `(n, d)` candidates move."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    for i in range(len(configs)):
        fits = decode(configs[i], at)
        values[i] = 0.0 if fits else np.inf
        for op in range(len(net.moves)):
            if plan.ends[op]:
                values[i] += group_bytes(op, at)


@compiled(runtime=False, inline=False)
def write_groups(configs: NDArray, starts: NDArray, keys: NDArray, costs: NDArray, features: NDArray, at: int) -> None:
    """Write the groups of `(n, d)` candidates, in the order in which they run."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    count = 0
    for i in range(len(configs)):
        decode(configs[i], at)
        for op in range(len(net.moves)):
            if plan.ends[op]:
                keys[count] = _key(op, at)
                costs[count] = group_bytes(op, at)
                _describe(op, features[count], at)
                count += 1
        starts[i + 1] = count


@compiled(runtime=False, inline=False)
def _key(head: int, at: int) -> np.uint64:
    """Return a hash of all that the bytes of a group depend on."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    key, end = np.uint64(1), plan.ends[head]
    for op in range(head, end):
        if plan.gone[op]:
            continue
        key = mix(key, np.uint64(net.kinds[op]))
        for d in range(DIMS):
            key = mix(key, np.uint64(plan.tile[op, d] + (plan.blocks[op, d] << 20) + (plan.order[op, d] << 40)))
        for i in range(2):
            key = mix(key, np.uint64(plan.streams[op, i] + 1))
        for x in range(net.reads[op] + 1):
            tensor = net.tensors[op, x]
            root = plan.root[tensor]
            leaves = plan.output[root] or plan.last[root] >= end
            brought = plan.first[root] == op and net.roles[root] != 2
            flags = (
                plan.served[op, x]
                + 4 * plan.level[op, x]
                + 64 * leaves
                + 128 * brought
                + 256 * plan.output[root]
                + 512 * plan.clash[op, x]
            )
            key = mix(key, np.uint64(flags))
            for a in range(AXES):
                key = mix(key, np.uint64(plan.fast[tensor, a]))
    return key


@compiled(runtime=False, inline=False)
def _describe(head: int, features: NDArray, at: int) -> None:
    state: Any = load(at, STATE)
    net, plan, granule = state.net, state.plan, state.limits[1]
    features[:] = 0
    for op in range(head, plan.ends[head]):
        if plan.gone[op]:
            continue
        features[0] += 1
        work = 1.0
        for d in range(DIMS):
            work *= net.extents[op, d]
        features[5] += work
        for x in range(net.reads[op] + 1):
            features[1 if x == net.reads[op] else 2] += whole(net, net.tensors[op, x], granule)
            features[4] += plan.resident[plan.root[net.tensors[op, x]]]
    features[3] = 1
    for i in range(2):
        d = plan.streams[head, i]
        if d >= 0:
            features[3] *= (net.extents[head, d] + plan.blocks[head, d] - 1) // plan.blocks[head, d]
