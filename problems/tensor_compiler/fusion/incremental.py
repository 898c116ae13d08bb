"""Incremental update of the fusion pass: after a few decisions have changed, only the affected nodes are visited.

A node's place depends on the places of its consumers and on their kernels. Nodes wait in a queue and are visited in the
order of a sweep. When a node has moved, its producers are queued, and the totals of the kernels that it entered,
left or is used by are computed again. The result equals that of a sweep to the last bit. Some decisions of a sweep
depend on the order in which a kernel fills up. Of two heavy operations, the first in the order of a sweep gets the
kernel, and the other is visited again. If a kernel has reached its largest size, the update gives up and a sweep is
needed. At the end, hosts of guests are found again where something has changed (see `guests`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hlo.opcodes import Kind
from ..layout.arrays import Edge, FusionGraph, Place
from .guests import place_guests_again
from .state import (
    LARGEST_KERNEL,
    MOST_COPIES,
    Amount,
    Counter,
    FusionState,
    Member,
    Span,
    Tally,
    Use,
    clear,
    is_empty,
    pop,
    push,
    touch,
)
from .sweep import add_node, clear_if_old, empty_kernel, is_heavy, join, legal, record_use, uses

compiled = compiled_for(__file__)


@compiled(runtime=False)
def update(config: NDArray, flips: NDArray, graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> bool:
    """Apply the changed columns of a configuration; return False if a sweep is needed.

    Changed kernels are touched.
    """
    gathered, state.counter[Counter.TOUCHED] = 0, 0
    for column in flips:
        state.config[column] = config[column]
        for i in range(inputs.columns[column], inputs.columns[column + 1]):
            e = inputs.decided[i]
            push(state.dirty, inputs.producer[e])
            _touch_kernels_of(graph.edge[e, Edge.CONSUMER], state)
    while not is_empty(state.dirty):
        if state.counter[Counter.TOUCHED] > len(graph.kind) or not _visit(graph, inputs, state):
            _abandon(state)
            return False
        while gathered < state.counter[Counter.TOUCHED]:
            recompute_totals(state.touched[gathered], graph, inputs, state)
            gathered += 1
    place_guests_again(graph, state)
    return True


@compiled(runtime=False)
def _visit(graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> bool:
    """Visit the waiting nodes until none is left; return False if a sweep is needed."""
    while not is_empty(state.dirty):
        v = pop(state.dirty)
        if state.counter[Counter.FILLED] + MOST_COPIES + 1 > len(state.member):
            return False
        reached = uses(v, state.config, False, MOST_COPIES, graph, state)
        if _reaches_full_kernel(v, reached, state):
            return False
        _move(v, join(v, reached, legal(v, reached, graph, state), graph, state), graph, inputs, state)
    return True


@compiled(runtime=False)
def _reaches_full_kernel(v: int, reached: int, state: FusionState) -> bool:
    """True if v may enter or leave a kernel of the largest size."""
    for i in range(reached):
        if state.tally[state.use[i, Use.REACHED], Tally.FUSED] >= LARGEST_KERNEL:
            return True
    for j in range(state.span[v, Span.START], state.span[v, Span.START] + state.span[v, Span.COUNT]):
        if state.tally[state.member[j, Member.KERNEL], Tally.FUSED] >= LARGEST_KERNEL:
            return True
    return False


@compiled(runtime=False)
def _move(v: int, count: int, graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> None:
    """Replace v's memberships by the last `count` that were written."""
    start, before, behind = state.span[v, Span.START], state.span[v, Span.COUNT], state.counter[Counter.FILLED]
    same, heavy = count == before, is_heavy(v, graph)
    for j in range(start, start + before):
        if not _among(j, behind, count, state):
            same = False
            _leave(v, state.member[j, Member.KERNEL], state)
    for j in range(behind, behind + count):
        if not _among(j, start, before, state):
            same = False
            _enter(v, state.member[j, Member.KERNEL], heavy, state)
    if not same:
        _store(v, count, state)
        _push_producers(v, graph, inputs, state)


@compiled(runtime=False)
def _among(j: int, start: int, count: int, state: FusionState) -> bool:
    """True if membership j equals one of the `count` from `start` on."""
    member, times, kernel, place = (
        state.member,
        state.times,
        state.member[j, Member.KERNEL],
        state.member[j, Member.PLACE],
    )
    for i in range(start, start + count):
        if member[i, Member.KERNEL] == kernel and member[i, Member.PLACE] == place and times[i] == times[j]:
            return True
    return False


@compiled(runtime=False)
def _leave(v: int, k: int, state: FusionState) -> None:
    """Take v out of kernel k."""
    tally = state.tally[k]
    tally[Tally.FUSED] -= 1
    if tally[Tally.HEAVY] == v:
        tally[
            Tally.HEAVY
        ] = -1  # an operation that could not enter because of v is found when the totals of k are computed
    touch(k, state)


@compiled(runtime=False)
def _enter(v: int, k: int, heavy: bool, state: FusionState) -> None:
    """Put v into kernel k; if v is heavy, it displaces a heavy operation that is already there."""
    tally = state.tally[k]
    tally[Tally.FUSED] += 1
    if heavy:
        if tally[Tally.HEAVY] >= 0:
            push(state.dirty, tally[Tally.HEAVY])
        tally[Tally.HEAVY] = v
    touch(k, state)


@compiled(runtime=False)
def _store(v: int, count: int, state: FusionState) -> None:
    """Store the memberships written last as those of v, in place of the old ones if they fit."""
    behind = state.counter[Counter.FILLED]
    if count > state.span[v, Span.COUNT]:
        state.span[v, Span.START] = behind
        state.counter[Counter.FILLED] += count
    start, state.span[v, Span.COUNT] = state.span[v, Span.START], count
    for i in range(count):
        state.member[start + i, Member.KERNEL] = state.member[behind + i, Member.KERNEL]
        state.member[start + i, Member.PLACE] = state.member[behind + i, Member.PLACE]
        state.times[start + i] = state.times[behind + i]


@compiled(runtime=False)
def _push_producers(v: int, graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> None:
    """Queue the producers of v, except those that are never fused."""
    for i in range(inputs.starts[v], inputs.starts[v + 1]):
        producer = inputs.producer[inputs.edge[i]]
        if graph.kind[producer] not in (Kind.SOURCE, Kind.FREE):
            push(state.dirty, producer)


@compiled(runtime=False)
def _touch_kernels_of(v: int, state: FusionState) -> None:
    for j in range(state.span[v, Span.START], state.span[v, Span.START] + state.span[v, Span.COUNT]):
        touch(state.member[j, Member.KERNEL], state)


@compiled(runtime=False)
def _abandon(state: FusionState) -> None:
    """Leave no node waiting and no kernel marked."""
    clear(state.dirty)
    for i in range(state.counter[Counter.TOUCHED]):
        state.changed[state.touched[i]] = False


class IncomingEdges(NamedTuple):
    """The edges of a graph, by consumer and by column of a configuration; the arrays may be longer than is used.

    Attributes:
      starts: `(n + 2,)`; v's edges from its producers are `edge[starts[v]:starts[v + 1]]`.
      edge: `(m,)` numbers of edges.
      producer: `(m,)` of each edge.
      columns: `(d + 2,)`; column j decides the edges `decided[columns[j]:columns[j + 1]]`.
      decided: numbers of edges.
    """

    starts: NDArray[np.int64]
    edge: NDArray[np.int64]
    producer: NDArray[np.int64]
    columns: NDArray[np.int64]
    decided: NDArray[np.int64]


NO_EDGES = IncomingEdges(*(np.empty(0, np.int64) for _ in IncomingEdges._fields))
"""Stands for the edges when no candidate is known from which an update could start."""


def inputs(graph: FusionGraph, d: int) -> IncomingEdges:
    """Return the edges of a graph by consumer and by column; `d` is the number of columns."""
    found = new_inputs(len(graph.kind), len(graph.edge), d)
    connect(graph, found)
    return found


def new_inputs(n: int, m: int, d: int) -> IncomingEdges:
    """Return memory for the edges of graphs of at most n nodes and m edges, and of d columns."""
    starts, edge, producer, columns, decided = (np.empty(size, np.int64) for size in (n + 2, m, m, d + 2, m))
    return IncomingEdges(starts, edge, producer, columns, decided)


@compiled()
def connect(graph: FusionGraph, inputs: IncomingEdges) -> None:
    """Write the edges of a graph by consumer and by column."""
    n = len(graph.kind)
    for v in range(n):
        inputs.producer[graph.starts[v] : graph.starts[v + 1]] = v
    _group(graph.edge[: graph.starts[n], Edge.CONSUMER], inputs.starts[: n + 2], inputs.edge)
    _group(graph.edge[: graph.starts[n], Edge.DECISION], inputs.columns, inputs.decided)


@compiled(runtime=False)
def _group(group: NDArray, starts: NDArray, places: NDArray) -> None:
    """Write the positions of each group in order, as compressed rows; -1 stands for no group."""
    starts[:] = 0
    for g in group:
        if g >= 0:
            starts[g + 2] += 1
    for g in range(1, len(starts)):
        starts[g] += starts[g - 1]
    for i in range(len(group)):
        if group[i] >= 0:
            places[starts[group[i] + 1]] = i
            starts[group[i] + 1] += 1


@compiled(runtime=False)
def recompute_totals(k: int, graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> None:
    """Add up again what kernel k computes and reads, in the order of a sweep."""
    state.changed[k] = False
    if state.tally[k, Tally.FUSED] == 0:
        return
    empty_kernel(k, state)
    state.counter[Counter.CLOCK] += 1
    clear_if_old(k, state)
    state.use[k, Use.COMPUTED], state.amount[k, Amount.TIMES] = Place.LOOP | Place.ALIGNED, 1.0
    push(state.inside, k)
    while not is_empty(state.inside):
        _include(pop(state.inside), k, graph, inputs, state)


@compiled(runtime=False)
def _include(v: int, k: int, graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> None:
    """Add v, whose uses in kernel k are noted; if k computes v, note the uses of its producers."""
    computed, taken, heavy, j = (
        state.use[v, Use.COMPUTED],
        state.use[v, Use.READ],
        is_heavy(v, graph),
        _membership(v, k, state),
    )
    if j < 0:
        if heavy and computed != 0 and state.tally[k, Tally.HEAVY] < 0:
            push(state.dirty, v)  # it was refused before, and may fit now
        computed, taken = 0, taken | (computed & ~Place.ALIGNED)
    add_node(v, k, computed, taken, state.amount[v, Amount.TIMES], state.amount[v, Amount.MOVED], heavy, graph, state)
    if j < 0:
        return
    for i in range(inputs.starts[v], inputs.starts[v + 1]):
        e = inputs.edge[i]
        producer, column = inputs.producer[e], graph.edge[e, Edge.DECISION]
        if graph.kind[producer] != Kind.FREE:
            if clear_if_old(producer, state):
                push(state.inside, producer)
            asked = column >= 0 and state.config[column] != 0
            record_use(producer, e, asked, state.member[j, Member.PLACE], state.times[j], graph, state)


@compiled(runtime=False)
def _membership(v: int, k: int, state: FusionState) -> int:
    """Return the membership of v in kernel k, or -1."""
    for j in range(state.span[v, Span.START], state.span[v, Span.START] + state.span[v, Span.COUNT]):
        if state.member[j, Member.KERNEL] == k:
            return j
    return -1
