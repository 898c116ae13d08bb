"""Candidates to plans that fit, and the bytes that these move.

As a compiler spills, what is wanted and does not fit is given up in a fixed order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load, mix

from .groups import (
    INPUT,
    LONGEST,
    NORMAL,
    RESIDENT,
    SLICE,
    WEIGHT,
    joins,
    live,
    merge,
    open_group,
    serve,
    store,
    stream,
    tile,
)
from .memory import buffer, lay, measure, needed, traffic, waiting, whole
from .space import AXES, DIMS, STATE

compiled = compiled_for(__file__)


@compiled(runtime=False, inline=False)
def decode(config: NDArray, at: int) -> bool:
    """Set the plan of a candidate.

    Returns:
      False if an operator does not fit even alone with the smallest tiles.
    """
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    merge(config, at)
    store(config, at)
    live(config, at)
    lay(config, at)
    head, fits = 0, True
    for op in range(len(net.moves)):
        plan.ends[op] = 0
    while head < len(net.moves):
        if plan.gone[head]:
            head += 1
            continue
        end = _form(head, config, at)
        end = _fit(head, end, config, at)
        fits = fits and end > 0
        plan.ends[head] = max(end, head + 1)
        head = plan.ends[head]
    for op in range(len(net.moves)):  # a tensor may have been given up by a later group
        if plan.ends[op]:
            serve(op, plan.ends[op], at)
    return fits


@compiled(runtime=False, inline=False)
def _form(head: int, config: NDArray, at: int) -> int:
    """Form the group that a candidate wants; return the place after its last operator."""
    state: Any = load(at, STATE)
    net, columns, plan = state.net, state.columns, state.plan
    tile(head, config, at)
    stream(head, config, at)
    open_group(head, head, at)
    end, members = head + 1, 1
    for op in range(head + 1, len(net.moves)):
        if plan.gone[op]:
            continue
        if config[columns.link[op]] == 0 or members == LONGEST:
            break
        tile(op, config, at)
        if not joins(head, op, at):
            break
        open_group(head, op, at)
        end, members = op + 1, members + 1
    return end


@compiled(runtime=False, inline=False)
def _fit(head: int, end: int, config: NDArray, at: int) -> int:
    """Give up tensors that stay, then the last operators of the group, then buffers, then tiles, until all fits.

    Returns:
      the place after the last operator that is left, or -1 if not even one fits.
    """
    state: Any = load(at, STATE)
    if _alone(head, end, at):
        tile_alone(head, at)
    for op in range(head, end):
        if not state.plan.gone[op]:
            measure(op, at)
    while True:
        serve(head, end, at)
        if needed(head, end, at) <= state.limits[0]:
            return end
        if _drop_tensor(head, end, at):
            continue
        if not _alone(head, end, at):
            end = _unlink(end, at)
            if _alone(head, end, at):
                tile_alone(head, at)
                measure(head, at)
        else:
            return end if _shrink(head, config, at) else -1


@compiled(runtime=False, inline=False)
def _shrink(op: int, config: NDArray, at: int) -> bool:
    """Shrink the buffers of an operator that runs alone until they fit; nothing else is in the scratchpad by then."""
    state: Any = load(at, STATE)
    while True:
        used = 0
        for x in range(state.net.reads[op] + 1):
            used += buffer(op, x, at)
        if used <= state.limits[0]:
            return True
        if not (_lower_buffer(op, at) or _halve_tile(op, config, at)):
            return False


@compiled(runtime=False, inline=False)
def _alone(head: int, end: int, at: int) -> bool:
    state: Any = load(at, STATE)
    plan = state.plan
    alone = True
    for op in range(head + 1, end):
        alone = alone and plan.gone[op]
    return alone


@compiled(runtime=False, inline=False)
def tile_alone(op: int, at: int) -> None:
    """Let an operator run without loops over blocks."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    for d in range(DIMS):
        plan.blocks[op, d] = net.extents[op, d]
    plan.streams[op, 0], plan.streams[op, 1] = -1, -1


@compiled(runtime=False, inline=False)
def _drop_tensor(head: int, end: int, at: int) -> bool:
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    largest, chosen = -1, -1
    for t in range(len(net.ranks)):
        if plan.resident[t] and plan.first[t] < end and plan.last[t] >= head:
            size = waiting(t, at)
            if size > largest:
                largest, chosen = size, t
    if chosen >= 0:
        plan.resident[chosen] = False
    return chosen >= 0


@compiled(runtime=False, inline=False)
def _unlink(end: int, at: int) -> int:
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    last = end - 1
    while plan.gone[last]:
        last -= 1
    plan.made[plan.root[net.tensors[last, net.reads[last]]]] = -1
    return last


@compiled(runtime=False, inline=False)
def _lower_buffer(op: int, at: int) -> bool:
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    largest, chosen = 0, -1
    for x in range(net.reads[op] + 1):
        size = buffer(op, x, at)
        if size > largest and plan.level[op, x] < net.tiles[op]:
            largest, chosen = size, x
    if chosen >= 0:
        plan.level[op, chosen] += 1
        traffic(at, op, chosen, net.bytes[net.tensors[op, chosen]], plan.moved[op, chosen])
    return chosen >= 0


@compiled(runtime=False, inline=False)
def _halve_tile(op: int, config: NDArray, at: int) -> bool:
    state: Any = load(at, STATE)
    columns, plan = state.columns, state.plan
    largest, chosen = 0, -1
    for d in range(DIMS):
        column = columns.tile[op, d]
        if column >= 0 and plan.tile[op, d] > columns.values[column, 0] and plan.tile[op, d] > largest:
            largest, chosen = plan.tile[op, d], d
    if chosen < 0:
        return False
    column = columns.tile[op, chosen]
    index = 0
    while columns.values[column, index + 1] < plan.tile[op, chosen]:
        index += 1
    plan.tile[op, chosen] = columns.values[column, index]
    measure(op, at)
    return True


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
