"""The variables that propagation decides, and the compiler's estimate of what their states and copies cost.

Operations that always have the same layout form a group, which is one variable: element-wise operations that feed one
another; a tuned operation, a reduction or a transpose is a variable of its own. A node that has only one state belongs
to variable 0, which is settled from the start.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..graph.graph import ProgramGraph, Tables
from ..graph.states import RELAYOUT, RESTACK
from ..hardware.kernel_row import PRODUCT_COLUMNS
from ..hardware.machine import Machine, Rate
from ..hlo.opcodes import Kind
from .arrays import GraphArrays, GraphEdge

compiled = compiled_for(__file__)


FUSED_SHARE = 0.25
"""An operation that can be fused is assumed to cost this share of its bytes and of the start of a kernel."""


class VariableNode(IntEnum):
    """Columns of `Variables.node`."""

    START = 0  # the node's edges are START to END
    END = 1
    LAYOUTS = 2  # how many the node can have
    SAME_MINOR = 3  # as in `Tables`
    RESULT = 4  # the node's layout in state s of its variable is `result[RESULT + s]`
    MOVE_COST = 5  # the cost of moving the node's result once in layout l is `move_cost[MOVE_COST + l]`


class VariableEdge(IntEnum):
    """Columns of `Variables.edge`."""

    CONSUMER = 0  # a variable
    WANTED = 1  # a consumer in state s wants layout `wanted[WANTED + s * STRIDE]`
    STRIDE = 2


class Incoming(IntEnum):
    """Columns of `Variables.incoming`."""

    PRODUCER = 0  # a variable
    NODE = 1  # row of `Variables.node`
    EDGE = 2  # row of `Variables.edge`


class Shift(IntEnum):
    """Columns of `Variables.shift`: what a copy does to the layout."""

    RESTACK = 0  # the minor dimension stays
    RELAYOUT = 1  # it changes


class Variables(NamedTuple):
    """k variables, their q nodes that other variables use, and e edges from these to variables; costs are in cycles.

    Attributes:
      of: `(n,)` the variable of each node.
      firsts: `(k + 1,)`; the costs of the states of variable x are `costs[firsts[x]:firsts[x + 1]]`.
      costs: of kernels, and of copies of nodes with a single layout.
      least: `(k,)` the least of each variable's costs.
      starts: `(k + 1,)`; the nodes of x that other variables use are `starts[x]:starts[x + 1]`.
      node: `(q, 6)` with the columns of `VariableNode`.
      result: numbers of layouts.
      move_cost: of moving a node's result once.
      shift: `(q, 2)` what a copy costs beyond that, if the minor dimension stays and if it changes.
      edge: `(e, 3)` with the columns of `VariableEdge`.
      wanted: numbers of layouts, -1 for any.
      entries: `(k + 1,)`; x's edges from producers are `incoming[entries[x]:entries[x + 1]]`.
      incoming: `(e, 3)` with the columns of `Incoming`.
    """

    of: NDArray[np.int64]
    firsts: NDArray[np.int64]
    costs: NDArray[np.float64]
    least: NDArray[np.float64]
    starts: NDArray[np.int64]
    node: NDArray[np.int64]
    result: NDArray[np.int64]
    move_cost: NDArray[np.float64]
    shift: NDArray[np.float64]
    edge: NDArray[np.int64]
    wanted: NDArray[np.int64]
    entries: NDArray[np.int64]
    incoming: NDArray[np.int64]


def variables(graph: ProgramGraph, program: GraphArrays, machine: Machine) -> Variables:
    """Return the variables of a graph, in an order in which producers come first."""
    tables, analytical = graph.tables, machine.analytical_model().array()
    joins = joining(graph)
    of, counts = grouped(graph, program, joins)
    firsts, costs = np.append(0, np.cumsum(counts)), np.zeros(counts.sum())
    _add(costs, firsts[of], _node_costs(graph, analytical), tables.first, program.signature, graph.weight)
    wanted = np.concatenate([tables.wanted, tables.compact, np.arange(tables.layouts.max())])
    edges = _edges(graph, of, joins)
    edges = edges[np.lexsort((edges[:, 0], of[edges[:, 0]]))]
    taken, first, number = np.unique(edges[:, 0], return_index=True, return_inverse=True)
    order = np.argsort(first)
    taken, number = taken[order], np.argsort(order)[number]
    node, move_cost = _taken(taken, np.append(np.sort(first), len(edges)), graph, analytical)
    shift = np.array([RESTACK, RELAYOUT]) / analytical[Rate.VECTOR] * graph.elements[taken, None]
    shift += FUSED_SHARE * analytical[Rate.LAUNCH]
    shift *= graph.weight[taken, None]
    edge = np.ascontiguousarray(edges[:, 1:])
    incoming = np.column_stack([of[edges[:, 0]], number, np.arange(len(edges))])
    incoming = incoming[np.argsort(edge[:, VariableEdge.CONSUMER], kind="stable")]
    k = np.arange(len(counts) + 1)
    starts, entries = np.searchsorted(of[taken], k), np.searchsorted(np.sort(edge[:, VariableEdge.CONSUMER]), k)
    least, result = np.empty(len(counts)), tables.result
    found = Variables(of, firsts, costs, least, starts, node, result, move_cost, shift, edge, wanted, entries, incoming)
    _fixed_copies(found)
    least[:] = np.minimum.reduceat(costs, firsts[:-1])
    return found


def _taken(
    taken: NDArray[np.int64], edges: NDArray[np.int64], graph: ProgramGraph, analytical: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return `Variables.node` and `Variables.move_cost` for some nodes; `edges` says where the edges of each start."""
    tables, signature = graph.tables, graph.signature[taken]
    layouts = tables.layouts[signature]
    firsts = np.append(0, np.cumsum(layouts))[:-1]
    rows = np.arange(layouts.sum()) + np.repeat(tables.array[signature] - firsts, layouts)
    move_cost = FUSED_SHARE * tables.bytes[rows] / analytical[Rate.MEMORY] * np.repeat(graph.weight[taken], layouts)
    columns = [edges[:-1], edges[1:], layouts, tables.same_minor[signature], tables.first[signature], firsts]
    return np.column_stack(columns).astype(np.int64), move_cost


def _node_costs(graph: ProgramGraph, analytical: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cost of each state in one run; operations that can be fused move only a share of their bytes."""
    tables = graph.tables
    kinds = np.empty(len(tables.first) - 1, np.int64)
    kinds[graph.signature] = graph.kind
    kind = np.repeat(kinds, np.diff(tables.first))
    dense = 2 * tables.loops[tables.row, :PRODUCT_COLUMNS].prod(axis=1) / analytical[Rate.MATRIX]
    moved, work = (tables.written + tables.read) / analytical[Rate.MEMORY], tables.work / analytical[Rate.VECTOR]
    heavy = np.maximum(np.maximum(dense, moved), work)
    return np.where((kind == Kind.MATRIX) | (kind == Kind.REDUCE), heavy, work + FUSED_SHARE * moved)


@compiled(runtime=False)
def _add(costs: NDArray, at: NDArray, node_costs: NDArray, first: NDArray, signature: NDArray, runs: NDArray) -> None:
    for v in range(len(at)):
        for s in range(first[signature[v] + 1] - first[signature[v]]):
            costs[at[v] + s] += runs[v] * node_costs[first[signature[v]] + s]


def _edges(graph: ProgramGraph, of: NDArray[np.int64], joins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return `(e, 4)`: producer, variable of the consumer, its first entry and stride in the table of wanted layouts.

    The table holds the wanted layouts, then the compact ones, which outputs want, then each layout's own number.
    """
    tables, signature = graph.tables, graph.signature
    matters = (tables.layouts[signature] > 1) & (graph.kind != Kind.FREE)
    consumer = signature[graph.users]
    at, stride = tables.wants[consumer] + graph.operand, tables.places[consumer]
    at, stride = np.where(joins, len(tables.wanted) + len(tables.compact), at), np.where(joins, 1, stride)
    inner = of[graph.producers] == of[graph.users]
    between = np.flatnonzero(matters[graph.producers] & ~inner)
    edges = np.column_stack([graph.producers, of[graph.users], at, stride])[between]
    made = np.flatnonzero(matters & graph.output & (of > 0))
    wanted_at = len(tables.wanted) + signature[made]
    outputs = np.column_stack([made, np.zeros_like(made), wanted_at, np.zeros_like(made)])
    return np.unique(np.concatenate([edges, outputs]).astype(np.int64), axis=0)


@compiled(runtime=False)
def copy_cost(q: int, layout: int, wanted: int, variables: Variables) -> float:
    """Return the cost of copying node q from one layout to another, in all its runs."""
    if layout == wanted or wanted < 0:
        return 0.0
    same_minor, move_cost = variables.node[q, VariableNode.SAME_MINOR], variables.node[q, VariableNode.MOVE_COST]
    shift = Shift.RESTACK if layout // same_minor == wanted // same_minor else Shift.RELAYOUT
    return variables.move_cost[move_cost + layout] + variables.move_cost[move_cost + wanted] + variables.shift[q, shift]


@compiled(runtime=False)
def _fixed_copies(variables: Variables) -> None:
    """Add the copies of nodes with a single state to the costs of their consumers."""
    for q in range(variables.starts[1]):
        layout = variables.result[variables.node[q, VariableNode.RESULT]]
        for e in range(variables.node[q, VariableNode.START], variables.node[q, VariableNode.END]):
            x = variables.edge[e, VariableEdge.CONSUMER]
            for s in range(variables.firsts[x + 1] - variables.firsts[x]):
                wanted_at = variables.wanted[
                    variables.edge[e, VariableEdge.WANTED] + s * variables.edge[e, VariableEdge.STRIDE]
                ]
                variables.costs[variables.firsts[x] + s] += copy_cost(q, layout, wanted_at, variables)


def grouped(
    graph: ProgramGraph, program: GraphArrays, joins: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the variable of each node, and how many states each variable has."""
    counts = np.diff(graph.tables.first)[graph.signature]
    depth, leader = np.zeros(len(graph), np.int64), np.arange(len(graph))
    _group(joins, counts > 1, program, depth, leader)
    leaders = np.flatnonzero((leader == np.arange(len(graph))) & (counts > 1))
    leaders = leaders[np.argsort(depth[leaders], kind="stable")]
    number = np.zeros(len(graph), np.int64)
    number[leaders] = 1 + np.arange(len(leaders))
    return number[leader], np.append(1, counts[leaders])


def joining(graph: ProgramGraph) -> NDArray[np.bool_]:
    """Return for each edge whether producer and consumer always have the same layout."""
    tables, signature = graph.tables, graph.signature.astype(np.int64)
    counts = np.diff(tables.first)
    order = np.arange(len(tables.result)) - np.repeat(tables.first[:-1], counts)
    own = np.logical_and.reduceat(tables.result == order, tables.first[:-1]) & (counts == tables.layouts)
    ordinary, joins = ~graph.tuned & (own & (counts > 1))[signature], np.zeros(len(graph.users), bool)
    _check_joining(ordinary, graph.producers, graph.users, graph.operand, signature, tables, joins)
    return joins


@compiled(runtime=False)
def _check_joining(
    ordinary: NDArray,
    producers: NDArray,
    users: NDArray,
    operand: NDArray,
    signature: NDArray,
    tables: Tables,
    joins: NDArray,
) -> None:
    for e in range(len(users)):
        p, c = producers[e], users[e]
        joins[e] = ordinary[p] and ordinary[c] and tables.layouts[signature[p]] == tables.layouts[signature[c]]
        for s in range(tables.layouts[signature[p]]):
            at = tables.wants[signature[c]] + s * tables.places[signature[c]] + operand[e]
            joins[e] = joins[e] and tables.wanted[at] == s


@compiled(runtime=False)
def _group(joins: NDArray, several: NDArray, program: GraphArrays, depth: NDArray, leader: NDArray) -> None:
    """Join nodes of equal depth along the edges that join, so that no path leaves a variable and returns to it.

    The depth of a path increases at each edge that does not join.
    """
    for v in range(len(depth)):
        if several[v]:
            for e in range(program.starts[v], program.starts[v + 1]):
                c = program.edge[e, GraphEdge.CONSUMER]
                depth[c] = max(depth[c], depth[v] + (0 if joins[e] else 1))
    for v in range(len(depth)):
        for e in range(program.starts[v], program.starts[v + 1]):
            c = program.edge[e, GraphEdge.CONSUMER]
            if joins[e] and depth[v] == depth[c]:
                a, b = _leader(v, leader), _leader(c, leader)
                leader[max(a, b)] = min(a, b)
    for v in range(len(depth)):
        leader[v] = _leader(v, leader)


@compiled(runtime=False)
def _leader(v: int, leader: NDArray) -> int:
    while leader[v] != v:
        leader[v] = leader[leader[v]]
        v = leader[v]
    return v
