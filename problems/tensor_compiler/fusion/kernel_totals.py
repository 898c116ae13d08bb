"""The totals of one kernel, computed again: from its result, over the producers of everything it computes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hlo.opcodes import Kind
from ..layout.arrays import Edge, FusionGraph, Place
from .columns import Amount, Counter, Member, Span, Tally, Use
from .notes import add, empty, fresh, is_heavy, note
from .queue import is_empty, pop, push
from .state import FusionState

compiled = compiled_for(__file__)


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
    """Return room for the edges of graphs of at most n nodes and m edges, and of d columns."""
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
def touch(k: int, state: FusionState) -> None:
    """Add kernel k to the list of changed kernels, whose totals must be computed again."""
    if not state.changed[k]:
        state.changed[k] = True
        state.touched[state.counter[Counter.TOUCHED]] = k
        state.counter[Counter.TOUCHED] += 1


@compiled(runtime=False)
def recompute_totals(k: int, graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> None:
    """Add up again what kernel k computes and reads, in the order of a sweep."""
    state.changed[k] = False
    if state.tally[k, Tally.FUSED] == 0:
        return
    empty(k, state)
    state.counter[Counter.CLOCK] += 1
    fresh(k, state)
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
    add(v, k, computed, taken, state.amount[v, Amount.TIMES], state.amount[v, Amount.MOVED], heavy, graph, state)
    if j < 0:
        return
    for i in range(inputs.starts[v], inputs.starts[v + 1]):
        e = inputs.edge[i]
        producer, column = inputs.producer[e], graph.edge[e, Edge.DECISION]
        if graph.kind[producer] != Kind.FREE:
            if fresh(producer, state):
                push(state.inside, producer)
            asked = column >= 0 and state.config[column] != 0
            note(producer, e, asked, state.member[j, Member.PLACE], state.times[j], graph, state)


@compiled(runtime=False)
def _membership(v: int, k: int, state: FusionState) -> int:
    """Return the membership of v in kernel k, or -1."""
    for j in range(state.span[v, Span.START], state.span[v, Span.START] + state.span[v, Span.COUNT]):
        if state.member[j, Member.KERNEL] == k:
            return j
    return -1
