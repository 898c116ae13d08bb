"""The laid-out program: a copy where two layouts differ, and no node for an operation that only renames.

A plan numbers the nodes and copies; the arrays are then filled in from it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..graph.graph import Read, Tables
from ..graph.states import RELAYOUT, RESTACK
from ..hlo.opcodes import Kind
from .arrays import Edge, Flow, FusionGraph, GraphArrays, GraphEdge, Node, Place

compiled = compiled_for(__file__)


_SKIPPED = -1


class Plan(NamedTuple):
    """The numbers of the first graph's nodes in the laid-out graph, whose nodes are numbered from 0 to n' - 1.

    `most` is the largest number of nodes in any layout.

    Attributes:
      number: `(n,)` of each node; for a node that only renames, the number of the node whose array it shares.
      taken: `(m,)` the number of the node at which each edge now starts, or -1 if the edge is gone.
      whole: `(most,)` bytes of the arrays.
      origin: `(most,)` the node of the first graph, `-1 - u` for a copy of node u.
      layout: `(most,)` the layout of a copy.
      source: `(most,)` the number of the node that a copy copies.
      output: `(most,)` True if the result must be in memory.
      starts: `(most + 1,)` where the edges of each start.
    """

    number: NDArray[np.int64]
    taken: NDArray[np.int64]
    whole: NDArray[np.float64]
    origin: NDArray[np.int64]
    layout: NDArray[np.int64]
    source: NDArray[np.int64]
    output: NDArray[np.bool_]
    starts: NDArray[np.int64]


class FixedNode(IntEnum):
    """Columns of `Fixed.node`."""

    ELEMENTS = 0
    RUNS = 1
    ELEMENT_BYTES = 2
    EARLY = 3


class FixedEdge(IntEnum):
    """Columns of `Fixed.edge`; as in `Edge`."""

    DECISION = 0
    PLACE = 1
    ORDER = 2


class Fixed(NamedTuple):
    """Facts about nodes and edges that are the same in all layouts.

    Attributes:
      node: `(n, 4)` with the columns of `FixedNode`.
      copying: `(n,)` the column that decides whether a node is fused into its copies, or -1.
      edge: `(m, 3)` with the columns of `FixedEdge`.
      reuse: `(m,)`.
    """

    node: NDArray[np.float64]
    copying: NDArray[np.int64]
    edge: NDArray[np.int64]
    reuse: NDArray[np.float64]


@compiled(runtime=False)
def layout_of(v: int, state: NDArray, program: GraphArrays, tables: Tables) -> int:
    """Return the number of the layout that v's result has."""
    return tables.result[tables.first[program.signature[v]] + state[v]]


@compiled(runtime=False)
def wanted_of(e: int, state: NDArray, program: GraphArrays, tables: Tables) -> int:
    """Return the number of the layout that an edge's consumer wants, -1 for any."""
    consumer = program.edge[e, GraphEdge.CONSUMER]
    signature = program.signature[consumer]
    return tables.wanted[
        tables.wants[signature] + state[consumer] * tables.places[signature] + program.edge[e, GraphEdge.PLACE]
    ]


@compiled(runtime=False)
def number_nodes(
    state: NDArray, program: GraphArrays, tables: Tables, seen: NDArray, owner: NDArray, plan: Plan
) -> int:
    """Fill in the plan and return the number of nodes; `seen` and `owner` have -1 for each layout of any node."""
    count = 0
    for v in range(len(program.kind)):
        signature, layout, p = program.signature[v], layout_of(v, state, program, tables), program.renamed[v]
        if p >= 0 and _only_renames(v, p, state, program, tables):
            plan.number[v] = plan.number[p]
        else:
            plan.number[v] = count
            plan.origin[count], plan.source[count], plan.output[count] = v, -1, False
            plan.whole[count] = tables.bytes[tables.array[signature] + layout]
            plan.starts[count + 1] = 0
            count += 1
        here, free = plan.number[v], program.kind[v] == Kind.FREE
        if program.output[v]:
            wanted = tables.compact[signature]
            if wanted != layout and not free:
                seen[wanted], owner[wanted] = v, count
                count = _copy(v, wanted, count, program, tables, plan)
                plan.output[count - 1] = True
            else:
                plan.output[here] = True
        for e in range(program.starts[v], program.starts[v + 1]):
            c = program.edge[e, GraphEdge.CONSUMER]
            taken, q = here, program.renamed[c]
            if q >= 0:
                taken = _SKIPPED if _only_renames(c, q, state, program, tables) else here
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
def _only_renames(v: int, p: int, state: NDArray, program: GraphArrays, tables: Tables) -> bool:
    """True if v, which renames its operand p, finds p in the layout in which no data has to move."""
    signature = program.signature[v]
    return tables.wanted[tables.wants[signature] + state[v] * tables.places[signature]] == layout_of(
        p, state, program, tables
    )


@compiled(runtime=False)
def _copy(v: int, layout: int, count: int, program: GraphArrays, tables: Tables, plan: Plan) -> int:
    """Add a copy of v to the plan and return the new number of nodes."""
    plan.origin[count], plan.layout[count], plan.source[count] = -1 - v, layout, plan.number[v]
    plan.whole[count] = tables.bytes[tables.array[program.signature[v]] + layout]
    plan.output[count] = False
    plan.starts[count + 1] = 0
    plan.starts[plan.number[v] + 1] += 1
    return count + 1


@compiled(runtime=False)
def fill(
    n: int,
    state: NDArray,
    program: GraphArrays,
    fixed: Fixed,
    tables: Tables,
    plan: Plan,
    filled: NDArray,
    arrays: FusionGraph,
) -> None:
    """Write the laid-out program of n nodes into `arrays`, whose `starts` and `output` are already filled in.

    `filled` has a place for a number for each node.
    """
    for i in range(n):
        filled[i] = arrays.starts[i]
    for i in range(n):
        v = plan.origin[i]
        if v >= 0:
            _fill_node(v, i, state, program, fixed, tables, arrays)
        else:
            _fill_copy(-1 - v, i, filled, state, program, fixed, tables, plan, arrays)
    for e in range(len(plan.taken)):
        p = plan.taken[e]
        if p < 0:
            continue
        at, c = filled[p], program.edge[e, GraphEdge.CONSUMER]
        filled[p] += 1
        edge, flow = arrays.edge[at], arrays.flow[at]
        order = fixed.edge[e, FixedEdge.ORDER]
        edge[Edge.CONSUMER] = plan.number[c]
        edge[Edge.DECISION] = fixed.edge[e, FixedEdge.DECISION] if _can_fuse(p, order, arrays) else -1
        edge[Edge.PLACE], edge[Edge.ORDER] = fixed.edge[e, FixedEdge.PLACE], order
        flow[Flow.READ], flow[Flow.REUSE] = plan.whole[p], fixed.reuse[e]
        if program.edge[e, GraphEdge.READ] == Read.RESULT:
            flow[Flow.READ] = min(plan.whole[p], plan.whole[plan.number[c]])
        elif program.edge[e, GraphEdge.READ] == Read.NOTHING:
            flow[Flow.READ] = 0.0


@compiled(runtime=False)
def _can_fuse(p: int, order: int, arrays: FusionGraph) -> bool:
    """True if a producer can be fused along an edge: a heavy one only element by element and if not an output."""
    if arrays.kind[p] in (Kind.SOURCE, Kind.FREE, Kind.OPAQUE):
        return False
    return arrays.kind[p] not in (Kind.REDUCE, Kind.MATRIX) or (order == Place.ALIGNED and not arrays.output[p])


@compiled(runtime=False)
def _fill_node(
    v: int, i: int, state: NDArray, program: GraphArrays, fixed: Fixed, tables: Tables, arrays: FusionGraph
) -> None:
    at, p = tables.first[program.signature[v]] + state[v], program.renamed[v]
    work = tables.work[at]
    if p >= 0:
        signature = program.signature[v]
        wanted = tables.wanted[tables.wants[signature] + state[v] * tables.places[signature]]
        there, here = layout_of(p, state, program, tables), tables.same_minor[program.signature[p]]
        same = wanted >= 0 and wanted // here == there // here
        work = fixed.node[v, FixedNode.ELEMENTS] * (RESTACK if same else RELAYOUT)
    node = arrays.node[i]
    arrays.kind[i], arrays.row[i] = program.kind[v], tables.row[at]
    node[Node.ELEMENTS], node[Node.BYTES], node[Node.WORK] = fixed.node[v, FixedNode.ELEMENTS], tables.written[at], work
    node[Node.RUNS] = fixed.node[v, FixedNode.RUNS]
    node[Node.ELEMENT_BYTES], node[Node.EARLY] = fixed.node[v, FixedNode.ELEMENT_BYTES], fixed.node[v, FixedNode.EARLY]


@compiled(runtime=False)
def _fill_copy(
    u: int,
    i: int,
    filled: NDArray,
    state: NDArray,
    program: GraphArrays,
    fixed: Fixed,
    tables: Tables,
    plan: Plan,
    arrays: FusionGraph,
) -> None:
    """Write a copy of u, and the edge to it."""
    signature, layout = program.signature[u], layout_of(u, state, program, tables)
    same = layout // tables.same_minor[signature] == plan.layout[i] // tables.same_minor[signature]
    node = arrays.node[i]
    arrays.kind[i], arrays.row[i] = Kind.MOVE, tables.array[signature] + plan.layout[i]
    node[Node.ELEMENTS], node[Node.BYTES] = fixed.node[u, FixedNode.ELEMENTS], plan.whole[i]
    node[Node.WORK] = fixed.node[u, FixedNode.ELEMENTS] * (RESTACK if same else RELAYOUT)
    node[Node.RUNS] = fixed.node[u, FixedNode.RUNS]
    node[Node.ELEMENT_BYTES], node[Node.EARLY] = fixed.node[u, FixedNode.ELEMENT_BYTES], 0.0
    p = plan.source[i]
    at = filled[p]
    filled[p] += 1
    edge, flow = arrays.edge[at], arrays.flow[at]
    edge[Edge.CONSUMER], edge[Edge.PLACE], edge[Edge.ORDER] = i, 0, Place.SHUFFLED
    edge[Edge.DECISION] = fixed.copying[u] if _can_fuse(p, Place.SHUFFLED, arrays) else -1
    flow[Flow.READ], flow[Flow.REUSE] = plan.whole[p], 1.0
