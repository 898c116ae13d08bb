"""The layout pass in place, from compiled code: into arrays with room for the program in any layout."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..graph.graph import ProgramGraph, Tables
from .arrays import Edge, Flow, FusionGraph, Node
from .copies import Plan, number_nodes
from .fill import Fixed, fill
from .graph_arrays import GraphArrays
from .propagation import Rates, spread
from .variables import Variables

compiled = compiled_for(__file__)


class Source(NamedTuple):
    """What the pass reads.

    Attributes:
      nodes: `(p,)` the operations whose layouts are decided.
      variables, program, fixed, tables: of the program.
    """

    nodes: NDArray[np.int64]
    variables: Variables
    program: GraphArrays
    fixed: Fixed
    tables: Tables


class Target(NamedTuple):
    """What the pass writes, and the memory that it works on.

    Attributes:
      pins, chosen: `(k,)` given and chosen states of variables.
      rates: of propagation.
      state: `(n,)` of the nodes.
      seen, owner: `(2, most)` room for the layouts of a node.
      filled: room for a number for each node.
      plan: of the laid-out program.
      arrays: the laid-out program; of its first axes only what is filled counts.
    """

    pins: NDArray[np.int64]
    chosen: NDArray[np.int64]
    rates: Rates
    state: NDArray[np.int64]
    seen: NDArray[np.int64]
    owner: NDArray[np.int64]
    filled: NDArray[np.int64]
    plan: Plan
    arrays: FusionGraph


def new_target(graph: ProgramGraph, source: Source) -> Target:
    """Return memory for the program in any layout; the system provides it only as it is used."""
    n, k, tables, plan = len(graph), len(source.variables.firsts) - 1, graph.tables, new_plan(graph)
    nodes, edges, most = len(plan.whole), len(plan.whole) + len(graph.users), int(tables.layouts.max())
    kind, row, filled = (np.empty(nodes, np.int64) for _ in range(3))
    node, flow = np.empty((nodes, len(Node))), np.empty((edges, len(Flow)))
    edge = np.empty((edges, len(Edge)), np.int64)
    rates = Rates(np.empty_like(source.variables.costs), np.empty(most, np.int64), np.empty(most), np.empty(most + 1))
    pins, chosen, state = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(n, np.int64)
    arrays = FusionGraph(kind, plan.output, node, row, tables.loops, tables.tiles, plan.starts, edge, flow)
    return Target(pins, chosen, rates, state, np.empty(most, np.int64), np.empty(most, np.int64), filled, plan, arrays)


def new_plan(graph: ProgramGraph) -> Plan:
    """Return a plan with room for all possible copies: one for each edge and output."""
    n, m = len(graph), len(graph.users)
    most = 2 * n + m
    numbers, taken, whole = np.empty(n, np.int64), np.empty(m, np.int64), np.empty(most)
    origin, layout, source = (np.empty(most, np.int64) for _ in range(3))
    return Plan(numbers, taken, whole, origin, layout, source, np.empty(most, bool), np.empty(most + 1, np.int64))


@compiled()
def lay_out(config: NDArray, source: Source, target: Target) -> int:
    """Lay a program out under `(p,)` choices and return the number of nodes that `target.arrays` then has."""
    target.pins[:] = -1
    for i in range(len(source.nodes)):
        target.pins[source.variables.of[source.nodes[i]]] = config[i]
    spread(target.pins, source.variables, target.rates, target.chosen)
    for v in range(len(target.state)):
        target.state[v] = target.chosen[source.variables.of[v]]
    target.seen[:] = -1
    n = number_nodes(target.state, source.program, source.tables, target.seen, target.owner, target.plan)
    graph = first_nodes(n, target.arrays)
    fill(target.state, source.program, source.fixed, source.tables, target.plan, target.filled, graph)
    return n


@compiled(runtime=False)
def first_nodes(n: int, arrays: FusionGraph) -> FusionGraph:
    """Return the graph of the first n nodes."""
    return FusionGraph(
        arrays.kind[:n],
        arrays.output,
        arrays.node,
        arrays.row,
        arrays.loops,
        arrays.tiles,
        arrays.starts,
        arrays.edge,
        arrays.flow,
    )
