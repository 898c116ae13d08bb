"""From the layouts of a few operations to those of all: linear sweeps along the edges. Compiled with numba.

What is decided spreads from tuned operations first, then from anything; what hears of nothing lies compact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .graph import Graph, Tables
from .opcodes import Kind

SOURCE, FREE, OPAQUE = int(Kind.SOURCE), int(Kind.FREE), int(Kind.OPAQUE)

USER, PLACE, MODE = range(3)  # of `edge`
_UNDECIDED = -1
_LATE = 1 << 30  # added to the place of a proposal that no tuned operation is behind


class Program(NamedTuple):
    """The arrays of a graph that a layout is applied to; see `Graph`.

    Attributes:
      edge: `(m, 3)` consumer, place at which it takes the producer, `Read`.
    """

    kind: NDArray[np.int64]
    sort: NDArray[np.int64]
    renamed: NDArray[np.int64]
    output: NDArray[np.bool_]
    starts: NDArray[np.int64]
    edge: NDArray[np.int64]


def program(graph: Graph) -> Program:
    """Return the arrays of a graph that a layout is applied to."""
    wide = [array.astype(np.int64) for array in (graph.kind, graph.sort, graph.renamed)]
    edge = np.column_stack([graph.users, graph.operand, graph.read]).astype(np.int64)
    return Program(*wide, graph.output, graph.user_starts, edge)


@compiled(runtime=False)
def layout_of(v: int, state: NDArray, program: Program, tables: Tables) -> int:
    """Return the number of the layout that v's result has."""
    return tables.result[tables.first[program.sort[v]] + state[v]]


@compiled(runtime=False)
def wanted_of(e: int, state: NDArray, program: Program, tables: Tables) -> int:
    """Return the number of the layout that an edge's consumer wants, -1 for any."""
    consumer = program.edge[e, USER]
    sort = program.sort[consumer]
    return tables.wanted[tables.wants[sort] + state[consumer] * tables.places[sort] + program.edge[e, PLACE]]


@compiled()
def propagate(
    config: NDArray, tuned: NDArray, program: Program, tables: Tables, votes: NDArray, state: NDArray
) -> None:
    """Write the `(n,)` states of all nodes.

    Args:
      config: `(p,)` the states of tuned nodes.
      tuned: `(p,)` their numbers.
      program: the graph.
      tables: its kinds of nodes.
      votes: room for the numbers of the layouts of any node, zeros.
      state: written.
    """
    n = len(program.kind)
    known, proposed, place = np.zeros(n, np.int8), np.empty(n, np.int64), np.full(n, 2 * _LATE)
    for v in range(n):
        sort = program.sort[v]
        single = tables.first[sort + 1] - tables.first[sort] == 1
        state[v] = 0 if single else _UNDECIDED
        known[v] = 1 if single and program.kind[v] != FREE else 0
    for i in range(len(tuned)):
        state[tuned[i]], known[tuned[i]] = config[i], 2
    _forward(2, known, proposed, place, program, tables, state)
    _backward(2, known, program, tables, votes, state)
    _forward(1, known, proposed, place, program, tables, state)
    _backward(0, known, program, tables, votes, state)


@compiled(runtime=False)
def _forward(
    least: int,
    known: NDArray,
    proposed: NDArray,
    place: NDArray,
    program: Program,
    tables: Tables,
    state: NDArray,
) -> None:
    """Let undecided nodes follow their first operand that tells them something; of equal ones a tuned one's."""
    for v in range(len(program.kind)):
        if state[v] == _UNDECIDED and place[v] < 2 * _LATE:
            state[v] = proposed[v]
            known[v] = 2 if place[v] < _LATE else 1
        if known[v] < least or tables.seconds[program.sort[v]] == 0:
            continue
        layout, late = layout_of(v, state, program, tables), 0 if known[v] == 2 else _LATE
        for e in range(program.starts[v], program.starts[v + 1]):
            c = program.edge[e, USER]
            if state[c] == _UNDECIDED and program.edge[e, PLACE] + late < place[c]:
                found = _taking(program.sort[c], program.edge[e, PLACE], layout, tables)
                if found >= 0:
                    proposed[c], place[c] = found, program.edge[e, PLACE] + late


@compiled(runtime=False)
def _taking(sort: int, place: int, layout: int, tables: Tables) -> int:
    """Return the first state of a kind that wants an operand in a layout, -1 if there is none."""
    for s in range(tables.first[sort + 1] - tables.first[sort]):
        if tables.wanted[tables.wants[sort] + s * tables.places[sort] + place] == layout:
            return s
    return -1


@compiled(runtime=False)
def _backward(
    least: int, known: NDArray, program: Program, tables: Tables, votes: NDArray, state: NDArray
) -> None:
    """Let undecided nodes follow most of their consumers; where `least` is 0, all are decided."""
    for v in range(len(program.kind) - 1, -1, -1):
        if state[v] != _UNDECIDED:
            continue
        sort = program.sort[v]
        wanted = _elected(v, least, known, program, tables, votes, state)
        if wanted < 0 and least > 0:
            continue
        state[v] = max(0, _giving(sort, wanted, tables))
        known[v] = max(1, least)


@compiled(runtime=False)
def _elected(
    v: int, least: int, known: NDArray, program: Program, tables: Tables, votes: NDArray, state: NDArray
) -> int:
    """Return the layout that most consumers want, an output's place in memory counting as one; -1 if none cares."""
    best, sort = -1, program.sort[v]
    if least == 0 and program.output[v]:
        best = tables.compact[sort]
        votes[best] += 1
    for e in range(program.starts[v], program.starts[v + 1]):
        if known[program.edge[e, USER]] >= max(1, least):
            wanted = wanted_of(e, state, program, tables)
            if wanted >= 0:
                votes[wanted] += 1
                better = best < 0 or votes[wanted] > votes[best] or (votes[wanted] == votes[best] and wanted < best)
                best = wanted if better else best
    for e in range(program.starts[v], program.starts[v + 1]):
        if known[program.edge[e, USER]] >= max(1, least):
            votes[max(0, wanted_of(e, state, program, tables))] = 0
    votes[max(0, best)] = 0
    return best


@compiled(runtime=False)
def _giving(sort: int, layout: int, tables: Tables) -> int:
    """Return the first state of a kind whose result lies in a layout, -1 if there is none."""
    for row in range(tables.first[sort], tables.first[sort + 1]):
        if tables.result[row] == layout:
            return row - tables.first[sort]
    return -1
