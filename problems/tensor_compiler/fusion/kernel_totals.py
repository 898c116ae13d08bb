"""What one kernel computes and reads, gathered from its result over the producers of all that is computed in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..layout.arrays import ALIGNED, COLUMN, FREE, LOOPING, USER, Arrays
from .queue import pop, push
from .state import (
    CLOCK,
    COMPUTED,
    FUSED,
    HEAVY,
    KERNEL,
    MOVED,
    PLACE,
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


NO_INPUTS = Inputs(*(np.empty(0, np.int64) for _ in Inputs._fields))
"""For where no candidate is known that an update could start from."""


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
def touch(k: int, state: State) -> None:
    """Put kernel k on the list of those that have changed, to be gathered."""
    if not state.changed[k]:
        state.changed[k] = True
        state.touched[state.counter[TOUCHED]] = k
        state.counter[TOUCHED] += 1


@compiled(runtime=False)
def gather(k: int, graph: Arrays, inputs: Inputs, state: State) -> None:
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
