"""The program in given layouts: copies where two meet, and nothing where an operation only renames. Uses numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..graph.graph import Read, Tables
from ..graph.states import RELAYOUT, RESTACK
from ..hlo.opcodes import Kind
from .arrays import ALIGNED, FREE, OPAQUE, PRODUCT, REDUCE, SOURCE, Arrays
from .graph_arrays import MODE, USER, Program, layout_of, wanted_of

MOVE = int(Kind.MOVE)
_RESULT, _NOTHING = int(Read.RESULT), int(Read.NOTHING)

# Columns of what is known of nodes and edges in any layout.
ELEMENTS, WEIGHT, ITEM = range(3)  # of `node`
COLUMN, WHERE, STRAIGHT = range(3)  # of `edge`
_SKIPPED = -1


class Facts(NamedTuple):
    """What is the same in all layouts.

    Attributes:
      node: `(n, 3)` elements, weight, bytes of an element.
      copying: `(n,)` the column that decides whether a node is fused into its copies, or -1.
      edge: `(m, 3)` the column that decides it or -1, place of work in front of a matrix product, ALIGNED or 0.
      reuse: `(m,)`.
    """

    node: NDArray[np.float64]
    copying: NDArray[np.int64]
    edge: NDArray[np.int64]
    reuse: NDArray[np.float64]


class Plan(NamedTuple):
    """Where the nodes of the first graph are in the laid-out one; its nodes are numbered from 0 to n'.

    Attributes:
      number: `(n,)` of each node; of one that only renames, that of the node whose array it is.
      taken: `(m,)` the number of the node that each edge starts at now, or -1 if it is gone.
      whole: `(n + room,)` bytes of the arrays.
      origin: `(n + room,)` the node of the first graph, `-1 - u` for a copy of u.
      layout: `(n + room,)` the layout of a copy.
      source: `(n + room,)` the number of the node that a copy copies.
      output: `(n + room,)`.
      starts: `(n + room + 1,)` where the edges of each start.
    """

    number: NDArray[np.int64]
    taken: NDArray[np.int64]
    whole: NDArray[np.float64]
    origin: NDArray[np.int64]
    layout: NDArray[np.int64]
    source: NDArray[np.int64]
    output: NDArray[np.bool_]
    starts: NDArray[np.int64]


@compiled(runtime=False)
def number_nodes(state: NDArray, program: Program, tables: Tables, seen: NDArray, owner: NDArray, plan: Plan) -> int:
    """Fill in the plan and return the number of nodes; `seen` and `owner` have room for any node's layouts, -1."""
    count = 0
    for v in range(len(program.kind)):
        sort, layout, p = program.sort[v], layout_of(v, state, program, tables), program.renamed[v]
        if p >= 0 and _lies_there(v, p, state, program, tables):
            plan.number[v] = plan.number[p]
        else:
            plan.number[v] = count
            plan.origin[count], plan.source[count], plan.output[count] = v, -1, False
            plan.whole[count] = tables.bytes[tables.array[sort] + layout]
            plan.starts[count + 1] = 0
            count += 1
        here, free = plan.number[v], program.kind[v] == FREE
        if program.output[v]:
            wanted = tables.compact[sort]
            if wanted != layout and not free:
                seen[wanted], owner[wanted] = v, count
                count = _copy(v, wanted, count, program, tables, plan)
                plan.output[count - 1] = True
            else:
                plan.output[here] = True
        for e in range(program.starts[v], program.starts[v + 1]):
            c = program.edge[e, USER]
            taken, q = here, program.renamed[c]
            if q >= 0:
                taken = _SKIPPED if _lies_there(c, q, state, program, tables) else here
            elif not free:
                wanted = wanted_of(e, state, program, tables)
                if wanted >= 0 and wanted != layout:
                    if seen[wanted] != v:
                        seen[wanted], owner[wanted] = v, count
                        count = _copy(v, wanted, count, program, tables, plan)
                    taken = owner[wanted]
            plan.taken[e] = taken
            if taken >= 0:
                plan.starts[taken + 1] += 1
    plan.starts[0] = 0
    for i in range(count):
        plan.starts[i + 1] += plan.starts[i]
    return count


@compiled(runtime=False)
def _lies_there(v: int, p: int, state: NDArray, program: Program, tables: Tables) -> bool:
    """Does a node that renames its operand p find it in the layout in which nothing has to move?"""
    sort = program.sort[v]
    return tables.wanted[tables.wants[sort] + state[v] * tables.places[sort]] == layout_of(p, state, program, tables)


@compiled(runtime=False)
def _copy(v: int, layout: int, count: int, program: Program, tables: Tables, plan: Plan) -> int:
    """Add a copy of v to the plan and return the new number of nodes."""
    plan.origin[count], plan.layout[count], plan.source[count] = -1 - v, layout, plan.number[v]
    plan.whole[count] = tables.bytes[tables.array[program.sort[v]] + layout]
    plan.output[count] = False
    plan.starts[count + 1] = 0
    plan.starts[plan.number[v] + 1] += 1
    return count + 1


@compiled()
def fill(state: NDArray, program: Program, facts: Facts, tables: Tables, plan: Plan, arrays: Arrays) -> None:
    """Write the laid-out program into `arrays`, whose `starts` and `output` are there."""
    filled = arrays.starts.copy()
    for i in range(len(arrays.kind)):
        v = plan.origin[i]
        if v >= 0:
            _fill_node(v, i, state, program, facts, tables, arrays)
        else:
            _fill_copy(-1 - v, i, filled, state, program, facts, tables, plan, arrays)
    for e in range(len(plan.taken)):
        p = plan.taken[e]
        if p < 0:
            continue
        at, c = filled[p], program.edge[e, USER]
        filled[p] += 1
        edge, flow = arrays.edge[at], arrays.flow[at]
        straight = facts.edge[e, STRAIGHT]
        edge[0] = plan.number[c]
        edge[1] = facts.edge[e, COLUMN] if _can_fuse(p, straight, arrays) else -1
        edge[2], edge[3] = facts.edge[e, WHERE], straight
        flow[0], flow[1] = plan.whole[p], facts.reuse[e]
        if program.edge[e, MODE] == _RESULT:
            flow[0] = min(plan.whole[p], plan.whole[plan.number[c]])
        elif program.edge[e, MODE] == _NOTHING:
            flow[0] = 0.0


@compiled(runtime=False)
def _can_fuse(p: int, straight: int, arrays: Arrays) -> bool:
    """Can a producer be fused along an edge? A heavy one only element by element, if it need not be in memory."""
    if arrays.kind[p] in (SOURCE, FREE, OPAQUE):
        return False
    return arrays.kind[p] not in (REDUCE, PRODUCT) or (straight == ALIGNED and not arrays.output[p])


@compiled(runtime=False)
def _fill_node(v: int, i: int, state: NDArray, program: Program, facts: Facts, tables: Tables, arrays: Arrays) -> None:
    at, p = tables.first[program.sort[v]] + state[v], program.renamed[v]
    work = tables.work[at]
    if p >= 0:
        sort = program.sort[v]
        wanted = tables.wanted[tables.wants[sort] + state[v] * tables.places[sort]]
        there, here = layout_of(p, state, program, tables), tables.seconds[program.sort[p]]
        same = wanted >= 0 and wanted // here == there // here
        work = facts.node[v, ELEMENTS] * (RESTACK if same else RELAYOUT)
    node = arrays.node[i]
    arrays.kind[i], arrays.row[i] = program.kind[v], tables.row[at]
    node[0], node[1], node[2] = facts.node[v, ELEMENTS], tables.written[at], work
    node[3], node[4] = facts.node[v, WEIGHT], facts.node[v, ITEM]


@compiled(runtime=False)
def _fill_copy(
    u: int,
    i: int,
    filled: NDArray,
    state: NDArray,
    program: Program,
    facts: Facts,
    tables: Tables,
    plan: Plan,
    arrays: Arrays,
) -> None:
    """Write a copy of u, and the edge to it."""
    sort, layout = program.sort[u], layout_of(u, state, program, tables)
    same = layout // tables.seconds[sort] == plan.layout[i] // tables.seconds[sort]
    node = arrays.node[i]
    arrays.kind[i], arrays.row[i] = MOVE, tables.array[sort] + plan.layout[i]
    node[0], node[1] = facts.node[u, ELEMENTS], plan.whole[i]
    node[2] = facts.node[u, ELEMENTS] * (RESTACK if same else RELAYOUT)
    node[3], node[4] = facts.node[u, WEIGHT], facts.node[u, ITEM]
    p = plan.source[i]
    at = filled[p]
    filled[p] += 1
    edge, flow = arrays.edge[at], arrays.flow[at]
    edge[0], edge[1], edge[2], edge[3] = i, facts.copying[u], 0, 0
    if not _can_fuse(p, 0, arrays):
        edge[1] = -1
    flow[0], flow[1] = plan.whole[p], 1.0
