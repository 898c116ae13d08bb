"""Candidates to plans that fit, as a compiler spills: what is wanted and does not fit is given up in a fixed order."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load

from .groups import LONGEST, joins, live, merge, open_group, serve, store, stream, tile
from .memory import buffer, lay, measure, needed, traffic, waiting
from .space import DIMS
from .state import STATE

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
