"""One sweep over a graph that fuses and times a configuration: the hot path of every fusion task.

Nodes are visited from the outputs to the inputs. The kernels that compute a node are known once its consumers' are, so
one visit decides where the node is computed, where it is read, and what that adds to each kernel. The cost is linear
in the edges, times the copies of a node, which are bounded. Compiled with numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .fusion_arrays import (
    ALIGNED,
    BYTES,
    COLUMN,
    ELEMENTS,
    FREE,
    ITEM,
    LOOPING,
    OPAQUE,
    PRODUCT,
    READ,
    REDUCE,
    REUSE,
    SOURCE,
    STRAIGHT,
    USER,
    WEIGHT,
    WHERE,
    WORK,
    Arrays,
    Costs,
)
from .kernel_settings import override
from .timing import (
    DEFAULT_FLAGS,
    GROUPS,
    HERTZ,
    LAUNCH,
    MEMORY,
    OPERANDS,
    OPERATIONS,
    OUTER,
    SIZE,
    SUMS,
    VECTOR,
    WRITTEN,
    kernel_cycles,
    settle,
    squeeze,
)

LARGEST_KERNEL = 256
"""Most operations in a kernel."""
MOST_COPIES = 16
"""Most kernels that compute the same node."""


class State(NamedTuple):
    """What a sweep writes down.

    Attributes:
      span: `(n, 2)` where v's memberships start, and how many there are.
      member: `(r, 2)` memberships: the kernel that computes v, and at which places.
      times: `(r,)` how often that kernel needs each element of v.
      use: `(n, 4)` for the node at hand, by kernel: the node it was last seen for, the kernels reached (a list), places
        where the node is to be computed, places where it is read.
      amount: `(n, 2)` likewise: bytes of one reading, times.
      load: `(n, 6)` by kernel: bytes read, then vector operations, at each place.
      tally: `(n, 3)` by kernel: operations, operands, its heavy operation or -1.
      tile, flags: of the kernel that is being timed.
    """

    span: NDArray[np.int64]
    member: NDArray[np.int64]
    times: NDArray[np.float64]
    use: NDArray[np.int64]
    amount: NDArray[np.float64]
    load: NDArray[np.float64]
    tally: NDArray[np.int64]
    tile: NDArray[np.float64]
    flags: NDArray[np.float64]


_KERNEL, _PLACE = range(2)
_SEEN, _REACHED, _COMPUTED, _TAKEN = range(4)
_MOVED, _TIMES = range(2)
_FUSED, _OPERANDS, _HEAVY = range(3)


@compiled()
def sweep(
    configs: NDArray,
    graph: Arrays,
    machine: NDArray,
    paper: NDArray,
    caution: float,
    costs: Costs,
    settings: NDArray,
    kernels: NDArray,
    seconds: NDArray,
    overflowing: NDArray,
) -> None:
    """Fuse and time each configuration.

    Args:
      configs: `(b, d)`; read, or where `caution` is positive, written with what the compiler itself decides.
      machine: `Machine.array()`, which times kernels.
      paper: the one that tiles are chosen for.
      caution: 0, or the largest ratio of bytes read to bytes made at which the compiler copies a producer.
      costs: of the nodes under the plan that the compiler revises; empty where it decides nothing.
      settings: `(b, n, 9)` int8, set for the kernel of each node (see `kernel_settings.override`), or `(b, 0, 9)`
        where the compiler sets all.
      kernels: `(n, 1 + KERNEL_WIDTH)`, filled for the last configuration: cycles of the kernel that computes each
        node, and the kernel (see `timing`); cycles are zero for a node that is not in memory.
      seconds: `(b,)`, filled with the program's run times; inf where the windows of a kernel overflow as they are set.
      overflowing: `(b,)`, filled with the first node of such a kernel, or -1.
    """
    n = len(graph.kind)
    room = n * (MOST_COPIES + 1)
    member, times = np.zeros((room, 2), np.int64), np.zeros(room)
    span, use, tally = np.zeros((n, 2), np.int64), np.zeros((n, 4), np.int64), np.zeros((n, 3), np.int64)
    amount, load = np.zeros((n, 2)), np.zeros((n, 6))
    state = State(span, member, times, use, amount, load, tally, np.empty(3), np.array(DEFAULT_FLAGS))
    for b in range(len(configs)):
        _fuse(configs[b], graph, machine, caution, costs, kernels, state)
        cycles, overflowing[b] = _time(graph, machine, paper, settings[b], kernels, state)
        seconds[b] = cycles / machine[HERTZ]


@compiled(runtime=False)
def _fuse(
    config: NDArray, graph: Arrays, machine: NDArray, caution: float, costs: Costs, kernels: NDArray, state: State
) -> None:
    """Decide where each node is computed and read; mark in `kernels` those that are in memory."""
    filled = 0
    for v in range(len(graph.kind)):
        state.use[v, _SEEN] = -1
    for v in range(len(graph.kind) - 1, -1, -1):
        state.span[v, 0] = filled
        kernels[v, 0] = 0.0
        if graph.kind[v] != FREE:
            reached = _uses(v, config, caution > 0, graph, state)
            fused = _legal(v, reached, graph, state)
            if caution > 0:
                fused = fused and _pays(v, reached, graph, machine, caution, costs, state)
                for e in range(graph.starts[v], graph.starts[v + 1]):
                    if graph.edge[e, COLUMN] >= 0:
                        config[graph.edge[e, COLUMN]] = fused
            kernels[v, 0], filled = _enter(v, reached, fused, filled, graph, state)
        state.span[v, 1] = filled - state.span[v, 0]


@compiled(runtime=False)
def _time(
    graph: Arrays, machine: NDArray, paper: NDArray, settings: NDArray, kernels: NDArray, state: State
) -> tuple[float, int]:
    """Fill in the marked kernels; return the cycles of all, each as often as it runs, and the first that overflows."""
    total, overflowing = 0.0, -1
    for v in range(len(graph.kind)):
        if kernels[v, 0] > 0:
            heavy = state.tally[v, _HEAVY] if state.tally[v, _HEAVY] >= 0 else v
            _describe(v, heavy, graph, state, kernels[v, 1:])
            tiles = graph.tiles[graph.row[heavy]]
            kernels[v, 0] = _cycles(v, tiles, machine, paper, settings, kernels[v, 1:], state)
            total += kernels[v, 0] * graph.node[v, WEIGHT]
            if kernels[v, 0] == np.inf and overflowing < 0:
                overflowing = v
    return total, overflowing


@compiled(runtime=False)
def _describe(v: int, heavy: int, graph: Arrays, state: State, kernel: NDArray) -> None:
    """Write all that the timing of the kernel of v depends on (see `timing`); `heavy` decides its shape."""
    for column in range(6):
        kernel[column] = state.load[v, column]
    row = graph.row[heavy]
    for column in range(4):
        kernel[GROUPS + column] = graph.loops[row, column]
    for column in range(3):
        kernel[OUTER + column] = graph.loops[row, 4 + column]
    kernel[WRITTEN], kernel[SIZE] = graph.node[v, BYTES], graph.node[v, ITEM]
    kernel[OPERANDS], kernel[OPERATIONS] = state.tally[v, _OPERANDS], state.tally[v, _FUSED]
    kernel[SUMS] = graph.node[heavy, ELEMENTS] * 4


@compiled(runtime=False)
def _cycles(
    v: int, tiles: NDArray, machine: NDArray, paper: NDArray, settings: NDArray, kernel: NDArray, state: State
) -> float:
    """Return the cycles of the kernel of v as the compiler sets it, or as far as nothing else is set for it."""
    tile, flags = state.tile, state.flags
    settle(paper, kernel, tiles, tile, flags)
    cycles = kernel_cycles(machine, kernel, tile, flags)
    fits = cycles < np.inf
    if not fits:
        cycles = squeeze(machine, kernel, tile, flags)
    if len(settings) == 0 or not settings[v].any():
        return cycles
    if not fits and kernel_cycles(machine, kernel, tile, flags) == np.inf:
        return cycles  # no tile fits: the kernel is not tuned, as in `kernel_settings.Settings`
    override(settings[v], kernel, tile, flags)
    cycles = kernel_cycles(machine, kernel, tile, flags)
    for flag in range(len(DEFAULT_FLAGS)):
        flags[flag] = DEFAULT_FLAGS[flag]
    return cycles


@compiled(runtime=False)
def _uses(v: int, config: NDArray, deciding: bool, graph: Arrays, state: State) -> int:
    """Gather how the kernels of v's consumers use v and return how many there are."""
    use, amount, edge = state.use, state.amount, graph.edge
    reached = 0
    for e in range(graph.starts[v], graph.starts[v + 1]):
        c, column = edge[e, USER], edge[e, COLUMN]
        asked = column >= 0 and (deciding or config[column] != 0)
        for j in range(state.span[c, 0], state.span[c, 0] + state.span[c, 1]):
            k, place = state.member[j, _KERNEL], state.member[j, _PLACE]
            if use[k, _SEEN] != v:
                use[k, _SEEN], use[reached, _REACHED] = v, k
                use[k, _COMPUTED], use[k, _TAKEN] = 0, 0
                amount[k, _MOVED], amount[k, _TIMES] = 0.0, 0.0
                reached += 1
            where = edge[e, WHERE] if edge[e, WHERE] else place & ~ALIGNED
            if asked:
                before = use[k, _COMPUTED]
                aligned = edge[e, STRAIGHT] & place & (before if before else ALIGNED)  # all paths must be
                use[k, _COMPUTED] = (before & ~ALIGNED) | where | aligned
                amount[k, _TIMES] = max(amount[k, _TIMES], state.times[j] * graph.flow[e, REUSE])
            else:
                use[k, _TAKEN] |= where
            amount[k, _MOVED] = max(amount[k, _MOVED], graph.flow[e, READ] * min(state.times[j], 1.0))
    return reached


@compiled(runtime=False)
def _legal(v: int, reached: int, graph: Arrays, state: State) -> bool:
    """May v be computed where it is wanted?"""
    kind = graph.kind[v]
    if kind in (SOURCE, OPAQUE) or reached > MOST_COPIES:
        return False
    for i in range(reached):
        if state.tally[state.use[i, _REACHED], _FUSED] >= LARGEST_KERNEL:
            return False
    if kind not in (REDUCE, PRODUCT):
        return True
    if reached != 1 or graph.output[v]:
        return False
    k = state.use[0, _REACHED]
    lone = state.use[k, _TAKEN] == 0 and state.use[k, _COMPUTED] == LOOPING | ALIGNED
    return lone and state.tally[k, _HEAVY] < 0


@compiled(runtime=False)
def _pays(v: int, reached: int, graph: Arrays, machine: NDArray, caution: float, costs: Costs, state: State) -> bool:
    """Does a roofline model say that computing v in its consumers' kernels is cheaper than through memory?"""
    if graph.kind[v] in (REDUCE, PRODUCT):
        return True
    stored, copies, work, size = graph.output[v], 0, 0.0, graph.node[v, BYTES]
    for i in range(reached):
        k = state.use[i, _REACHED]
        stored |= state.use[k, _TAKEN] != 0
        if state.use[k, _COMPUTED] != 0:
            copies += 1
            work += costs.operations[v] * state.amount[k, _TIMES]
    if copies + stored > 1 and costs.read[v] > caution * size:
        return False
    fused = copies * costs.read[v] / machine[MEMORY] + work / machine[VECTOR]
    apart = copies * size / machine[MEMORY]
    if not stored:
        apart += (size + costs.read[v]) / machine[MEMORY]
        apart += machine[LAUNCH] + costs.operations[v] / machine[VECTOR]
    return fused < apart


@compiled(runtime=False)
def _enter(v: int, reached: int, fused: bool, filled: int, graph: Arrays, state: State) -> tuple[float, int]:
    """Add v to the kernels that compute or read it; return whether it opens its own, and the new fill of `member`."""
    heavy = graph.kind[v] in (REDUCE, PRODUCT)
    stored = graph.output[v]
    for i in range(reached):
        k = state.use[i, _REACHED]
        computed, taken, times = state.use[k, _COMPUTED], state.use[k, _TAKEN], state.amount[k, _TIMES]
        if not fused:
            computed, taken = 0, taken | (computed & ~ALIGNED)
        if computed != 0:
            state.tally[k, _FUSED] += 1
            if heavy:
                state.tally[k, _HEAVY] = v
            state.member[filled, _KERNEL], state.member[filled, _PLACE], state.times[filled] = k, computed, times
            filled += 1
        if taken != 0:
            stored = True
            state.tally[k, _OPERANDS] += 1
        for place in range(3):
            if computed & (1 << place):
                state.load[k, 3 + place] += graph.node[v, WORK] * times
            if taken & (1 << place):
                state.load[k, place] += state.amount[k, _MOVED]
    if not stored or graph.kind[v] == SOURCE:
        return 0.0, filled
    for column in range(6):
        state.load[v, column] = 0.0
    state.load[v, 3] = graph.node[v, WORK]
    state.tally[v, _FUSED], state.tally[v, _OPERANDS], state.tally[v, _HEAVY] = 1, 0, v if heavy else -1
    state.member[filled, _KERNEL], state.member[filled, _PLACE], state.times[filled] = v, LOOPING | ALIGNED, 1.0
    return 1.0, filled + 1
