"""The fusion pass after a few decisions have changed: only what they reach is looked at again.

A node's place depends on its consumers' and on the kernels that they are in, so nodes to look at wait in a queue, and
are visited in the order of a sweep. Where one has moved, the producers in front of it wait too, and the kernels that it
entered, left or is used by otherwise are gathered anew: from the result, over the producers of all that is computed.
The outcome is that of a sweep, to the last bit. What a sweep decides by the order in which a kernel fills up is kept
as follows: of two heavy operations the first in a sweep's order gets the kernel, and the other is looked at again;
where a kernel is as large as one may be, the update gives up, and a sweep has to do it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .fusion_arrays import ALIGNED, COLUMN, FREE, LOOPING, SOURCE, USER, Arrays
from .fusion_state import (
    CLOCK,
    COMPUTED,
    FILLED,
    FUSED,
    HEAVY,
    KERNEL,
    LARGEST_KERNEL,
    MOST_COPIES,
    MOVED,
    PLACE,
    REACHED,
    TAKEN,
    TIMES,
    TOUCHED,
    State,
    add,
    empty,
    fresh,
    is_heavy,
    note,
)
from .fusion_sweep import join, legal, uses
from .queue import clear, pop, push


class Inputs(NamedTuple):
    """The edges of a graph seen from the consumers and from the columns of a configuration.

    Attributes:
      starts: `(n + 1,)`; v's edges from its producers are `edge[starts[v]:starts[v + 1]]`.
      edge: `(m,)` numbers of edges.
      producer: `(m,)` of each edge.
      columns: `(d + 1,)`; column j decides the edges `decided[columns[j]:columns[j + 1]]`.
      decided: numbers of edges.
    """

    starts: NDArray[np.int64]
    edge: NDArray[np.int64]
    producer: NDArray[np.int64]
    columns: NDArray[np.int64]
    decided: NDArray[np.int64]


def inputs(graph: Arrays, d: int) -> Inputs:
    """Return the edges of a graph by consumer and by column; `d` is the number of columns."""
    n = len(graph.kind)
    starts, edge = _by(graph.edge[:, USER], n)
    columns, decided = _by(graph.edge[:, COLUMN], d)
    return Inputs(starts, edge, np.repeat(np.arange(n), np.diff(graph.starts)), columns, decided)


@compiled()
def _by(group: NDArray, count: int) -> tuple[NDArray, NDArray]:
    """Return the places of each of `count` groups in order, as compressed rows; -1 is no group."""
    starts = np.zeros(count + 2, np.int64)
    for g in group:
        starts[g + 2] += g >= 0
    starts = np.cumsum(starts)
    places = np.empty(starts[-1], np.int64)
    for i in range(len(group)):
        if group[i] >= 0:
            places[starts[group[i] + 1]] = i
            starts[group[i] + 1] += 1
    return starts[:-1], places


@compiled(runtime=False)
def update(config: NDArray, flips: NDArray, graph: Arrays, inputs: Inputs, state: State) -> bool:
    """Take over the columns of a configuration that have changed; return False where a sweep has to do it.

    The kernels that have changed are touched.
    """
    gathered, state.counter[TOUCHED] = 0, 0
    for column in flips:
        state.config[column] = config[column]
        for i in range(inputs.columns[column], inputs.columns[column + 1]):
            e = inputs.decided[i]
            push(state.dirty, inputs.producer[e])
            _touch_kernels_of(graph.edge[e, USER], state)
    while state.dirty.heap[0] > 0:
        if state.counter[TOUCHED] > len(graph.kind) or not _visit(graph, inputs, state):
            _abandon(state)
            return False
        while gathered < state.counter[TOUCHED]:
            _gather(state.touched[gathered], graph, inputs, state)
            gathered += 1
    return True


@compiled(runtime=False)
def _visit(graph: Arrays, inputs: Inputs, state: State) -> bool:
    """Look at the nodes that wait until none does; return False where that is beyond an update.

    The first node to leave a kernel, and any to enter it, is seen here to use it: so no full kernel changes unseen.
    """
    while state.dirty.heap[0] > 0:
        v = pop(state.dirty)
        if state.counter[FILLED] + MOST_COPIES + 1 > len(state.member):
            return False
        reached = uses(v, state.config, False, MOST_COPIES, graph, state)
        for i in range(reached):
            if state.tally[state.use[i, REACHED], FUSED] >= LARGEST_KERNEL:
                return False
        _move(v, join(v, reached, legal(v, reached, graph, state), graph, state), graph, inputs, state)
    return True


@compiled(runtime=False)
def _move(v: int, count: int, graph: Arrays, inputs: Inputs, state: State) -> None:
    """Replace v's memberships by the `count` that were written last."""
    start, before, behind = state.span[v, 0], state.span[v, 1], state.counter[FILLED]
    same, heavy = count == before, is_heavy(v, graph)
    for j in range(start, start + before):
        if not _among(j, behind, count, state):
            same = False
            _leave(v, state.member[j, KERNEL], state)
    for j in range(behind, behind + count):
        if not _among(j, start, before, state):
            same = False
            _enter(v, state.member[j, KERNEL], heavy, state)
    if not same:
        _keep(v, count, state)
        _push_producers(v, graph, inputs, state)


@compiled(runtime=False)
def _among(j: int, start: int, count: int, state: State) -> bool:
    """Is membership j one of those that start there?"""
    member, times = state.member, state.times
    for i in range(start, start + count):
        if member[i, KERNEL] == member[j, KERNEL] and member[i, PLACE] == member[j, PLACE] and times[i] == times[j]:
            return True
    return False


@compiled(runtime=False)
def _leave(v: int, k: int, state: State) -> None:
    """Take v out of kernel k."""
    tally = state.tally[k]
    tally[FUSED] -= 1
    if tally[HEAVY] == v:
        tally[HEAVY] = -1  # whom v has kept out is found when k is gathered
    _touch(k, state)


@compiled(runtime=False)
def _enter(v: int, k: int, heavy: bool, state: State) -> None:
    """Put v into kernel k; a heavy operation behind it has to go."""
    tally = state.tally[k]
    tally[FUSED] += 1
    if heavy:
        if tally[HEAVY] >= 0:
            push(state.dirty, tally[HEAVY])
        tally[HEAVY] = v
    _touch(k, state)


@compiled(runtime=False)
def _keep(v: int, count: int, state: State) -> None:
    """Make the memberships that were written last those of v: in place of the old ones if there is room."""
    behind = state.counter[FILLED]
    if count > state.span[v, 1]:
        state.span[v, 0] = behind
        state.counter[FILLED] += count
    start, state.span[v, 1] = state.span[v, 0], count
    for i in range(count):
        state.member[start + i, KERNEL] = state.member[behind + i, KERNEL]
        state.member[start + i, PLACE] = state.member[behind + i, PLACE]
        state.times[start + i] = state.times[behind + i]


@compiled(runtime=False)
def _push_producers(v: int, graph: Arrays, inputs: Inputs, state: State) -> None:
    """Let those that v takes wait, unless nothing can change for them."""
    for i in range(inputs.starts[v], inputs.starts[v + 1]):
        producer = inputs.producer[inputs.edge[i]]
        if graph.kind[producer] not in (SOURCE, FREE):
            push(state.dirty, producer)


@compiled(runtime=False)
def _touch(k: int, state: State) -> None:
    if not state.changed[k]:
        state.changed[k] = True
        state.touched[state.counter[TOUCHED]] = k
        state.counter[TOUCHED] += 1


@compiled(runtime=False)
def _touch_kernels_of(v: int, state: State) -> None:
    for j in range(state.span[v, 0], state.span[v, 0] + state.span[v, 1]):
        _touch(state.member[j, KERNEL], state)


@compiled(runtime=False)
def _abandon(state: State) -> None:
    """Leave no node waiting and no kernel marked."""
    clear(state.dirty)
    for i in range(state.counter[TOUCHED]):
        state.changed[state.touched[i]] = False


@compiled(runtime=False)
def _gather(k: int, graph: Arrays, inputs: Inputs, state: State) -> None:
    """Add up again what kernel k computes and reads, in the order of a sweep."""
    state.changed[k] = False
    if state.tally[k, FUSED] == 0:
        return
    empty(k, state)
    state.counter[CLOCK] += 1
    fresh(k, state)
    state.use[k, COMPUTED], state.amount[k, TIMES] = LOOPING | ALIGNED, 1.0
    push(state.inside, k)
    while state.inside.heap[0] > 0:
        _include(pop(state.inside), k, graph, inputs, state)


@compiled(runtime=False)
def _include(v: int, k: int, graph: Arrays, inputs: Inputs, state: State) -> None:
    """Add v, whose uses in kernel k are noted, and note its own uses of its producers if k computes it."""
    computed, taken, heavy, j = (
        state.use[v, COMPUTED],
        state.use[v, TAKEN],
        is_heavy(v, graph),
        _membership(v, k, state),
    )
    if j < 0:
        if heavy and computed != 0 and state.tally[k, HEAVY] < 0:
            push(state.dirty, v)  # it was refused, and may now have a place
        computed, taken = 0, taken | (computed & ~ALIGNED)
    add(v, k, computed, taken, state.amount[v, TIMES], state.amount[v, MOVED], heavy, graph, state)
    if j < 0:
        return
    for i in range(inputs.starts[v], inputs.starts[v + 1]):
        e = inputs.edge[i]
        producer, column = inputs.producer[e], graph.edge[e, COLUMN]
        if graph.kind[producer] != FREE:
            if fresh(producer, state):
                push(state.inside, producer)
            asked = column >= 0 and state.config[column] != 0
            note(producer, e, asked, state.member[j, PLACE], state.times[j], graph, state)


@compiled(runtime=False)
def _membership(v: int, k: int, state: State) -> int:
    """Return where it stands that kernel k computes v, or -1."""
    for j in range(state.span[v, 0], state.span[v, 0] + state.span[v, 1]):
        if state.member[j, KERNEL] == k:
            return j
    return -1
