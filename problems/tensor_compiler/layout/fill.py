"""The laid-out program as arrays, filled in from its plan."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..graph.graph import Read, Tables
from ..graph.states import RELAYOUT, RESTACK
from ..hlo.opcodes import Kind
from .arrays import Edge, Flow, FusionGraph, Node, Place
from .copies import Plan
from .graph_arrays import GraphArrays, GraphEdge, layout_of

compiled = compiled_for(__file__)


class FixedNode(IntEnum):
    """Columns of `Fixed.node`."""

    ELEMENTS = 0
    RUNS = 1
    ELEMENT_BYTES = 2


class FixedEdge(IntEnum):
    """Columns of `Fixed.edge`; as in `Edge`."""

    DECISION = 0
    PLACE = 1
    ALIGNED = 2


class Fixed(NamedTuple):
    """Facts about nodes and edges that are the same in all layouts.

    Attributes:
      node: `(n, 3)` with the columns of `FixedNode`.
      copying: `(n,)` the column that decides whether a node is fused into its copies, or -1.
      edge: `(m, 3)` with the columns of `FixedEdge`.
      reuse: `(m,)`.
    """

    node: NDArray[np.float64]
    copying: NDArray[np.int64]
    edge: NDArray[np.int64]
    reuse: NDArray[np.float64]


@compiled(runtime=False)
def fill(
    state: NDArray,
    program: GraphArrays,
    fixed: Fixed,
    tables: Tables,
    plan: Plan,
    filled: NDArray,
    arrays: FusionGraph,
) -> None:
    """Write the laid-out program into `arrays`, whose `starts` and `output` are already filled in.

    `filled` has room for a number for each node.
    """
    for i in range(len(arrays.kind)):
        filled[i] = arrays.starts[i]
    for i in range(len(arrays.kind)):
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
        aligned = fixed.edge[e, FixedEdge.ALIGNED]
        edge[Edge.CONSUMER] = plan.number[c]
        edge[Edge.DECISION] = fixed.edge[e, FixedEdge.DECISION] if _can_fuse(p, aligned, arrays) else -1
        edge[Edge.PLACE], edge[Edge.ALIGNED] = fixed.edge[e, FixedEdge.PLACE], aligned
        flow[Flow.READ], flow[Flow.REUSE] = plan.whole[p], fixed.reuse[e]
        if program.edge[e, GraphEdge.READ] == Read.RESULT:
            flow[Flow.READ] = min(plan.whole[p], plan.whole[plan.number[c]])
        elif program.edge[e, GraphEdge.READ] == Read.NOTHING:
            flow[Flow.READ] = 0.0


@compiled(runtime=False)
def _can_fuse(p: int, aligned: int, arrays: FusionGraph) -> bool:
    """True if a producer can be fused along an edge: a heavy one only element by element and if not an output."""
    if arrays.kind[p] in (Kind.SOURCE, Kind.FREE, Kind.OPAQUE):
        return False
    return arrays.kind[p] not in (Kind.REDUCE, Kind.MATRIX) or (aligned == Place.ALIGNED and not arrays.output[p])


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
    node[Node.ELEMENT_BYTES] = fixed.node[v, FixedNode.ELEMENT_BYTES]


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
    node[Node.ELEMENT_BYTES] = fixed.node[u, FixedNode.ELEMENT_BYTES]
    p = plan.source[i]
    at = filled[p]
    filled[p] += 1
    edge, flow = arrays.edge[at], arrays.flow[at]
    edge[Edge.CONSUMER], edge[Edge.PLACE], edge[Edge.ALIGNED] = i, 0, 0
    edge[Edge.DECISION] = fixed.copying[u] if _can_fuse(p, 0, arrays) else -1
    flow[Flow.READ], flow[Flow.REUSE] = plan.whole[p], 1.0
