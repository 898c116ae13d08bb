"""What propagation decides, and what the compiler estimates it to cost: variables, and copies where two do not meet.

What has but one state belongs to variable 0, which is settled from the start. For others see `layout_groups`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..graph.graph import Graph
from ..graph.states import RELAYOUT, RESTACK
from ..hardware.machine import Machine
from ..hardware.timing import LAUNCH, MATRIX, MEMORY, VECTOR
from ..hlo.opcodes import Kind
from .graph_arrays import Program
from .groups import grouped, joining

FUSED = 0.25
"""Share of the bytes, and of the start of a kernel, that what can be fused is taken to cost."""

START, END, LAYOUTS, SECONDS, RESULT, ARRAY = range(6)  # columns of `Variables.node`
CONSUMER, WISH, STRIDE = range(3)  # of `edge`
PRODUCER, TAKEN, EDGE = range(3)  # of `incoming`


class Variables(NamedTuple):
    """k variables, the q nodes in them that others take, and e edges from these to variables; prices are in cycles.

    Attributes:
      of: `(n,)` the variable of each node.
      firsts: `(k + 1,)`; what the states of variable x cost is `costs[firsts[x]:firsts[x + 1]]`.
      costs: of kernels, and of copies of what has but one layout.
      least: `(k,)` the least of each variable's costs.
      starts: `(k + 1,)`; the nodes of x that others take are `starts[x]:starts[x + 1]`.
      node: `(q, 6)` see the columns above; edges are from START to END.
      result: number of a node's layout at RESULT + its variable's state.
      array: the price of moving a node's result once at ARRAY + number of a layout.
      shift: `(q, 2)` the price of a copy beyond that: the minor dimension stays, or changes.
      edge: `(e, 3)` consumer; one in state s wants layout `wanted[WISH + s * STRIDE]`.
      wanted: numbers of layouts, -1 for any.
      entries: `(k + 1,)`; x's edges from producers are `incoming[entries[x]:entries[x + 1]]`.
      incoming: `(e, 3)` variable and number among the q of the producer, number of the edge.
    """

    of: NDArray[np.int64]
    firsts: NDArray[np.int64]
    costs: NDArray[np.float64]
    least: NDArray[np.float64]
    starts: NDArray[np.int64]
    node: NDArray[np.int64]
    result: NDArray[np.int64]
    array: NDArray[np.float64]
    shift: NDArray[np.float64]
    edge: NDArray[np.int64]
    wanted: NDArray[np.int64]
    entries: NDArray[np.int64]
    incoming: NDArray[np.int64]


def variables(graph: Graph, program: Program, machine: Machine) -> Variables:
    """Return the variables of a graph, in an order in which producers come first."""
    tables, paper = graph.tables, machine.on_paper().array()
    joins = joining(graph)
    of, counts = grouped(graph, program, joins)
    firsts, costs = np.append(0, np.cumsum(counts)), np.zeros(counts.sum())
    _add(costs, firsts[of], _node_prices(graph, paper), tables.first, program.sort, graph.weight)
    wanted = np.concatenate([tables.wanted, tables.compact, np.arange(tables.layouts.max())])
    edges = _edges(graph, of, joins)
    edges = edges[np.lexsort((edges[:, 0], of[edges[:, 0]]))]
    taken, first, number = np.unique(edges[:, 0], return_index=True, return_inverse=True)
    order = np.argsort(first)
    taken, number = taken[order], np.argsort(order)[number]
    node, array = _taken(taken, np.append(np.sort(first), len(edges)), graph, paper)
    shift = np.array([RESTACK, RELAYOUT]) / paper[VECTOR] * graph.elements[taken, None] + FUSED * paper[LAUNCH]
    shift *= graph.weight[taken, None]
    edge = np.ascontiguousarray(edges[:, 1:])
    incoming = np.column_stack([of[edges[:, 0]], number, np.arange(len(edges))])
    incoming = incoming[np.argsort(edge[:, 0], kind="stable")]
    k = np.arange(len(counts) + 1)
    starts, entries = np.searchsorted(of[taken], k), np.searchsorted(np.sort(edge[:, 0]), k)
    least, result = np.empty(len(counts)), tables.result
    found = Variables(of, firsts, costs, least, starts, node, result, array, shift, edge, wanted, entries, incoming)
    _fixed_copies(found)
    least[:] = np.minimum.reduceat(costs, firsts[:-1])
    return found


def _taken(
    taken: NDArray[np.int64], edges: NDArray[np.int64], graph: Graph, paper: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return `Variables.node` and `Variables.array` for some nodes, of which each has edges from one number on."""
    tables, sort = graph.tables, graph.sort[taken]
    layouts = tables.layouts[sort]
    firsts = np.append(0, np.cumsum(layouts))[:-1]
    rows = np.arange(layouts.sum()) + np.repeat(tables.array[sort] - firsts, layouts)
    array = FUSED * tables.bytes[rows] / paper[MEMORY] * np.repeat(graph.weight[taken], layouts)
    columns = [edges[:-1], edges[1:], layouts, tables.seconds[sort], tables.first[sort], firsts]
    return np.column_stack(columns).astype(np.int64), array


def _node_prices(graph: Graph, paper: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each state of the tables costs in one run; only what cannot be fused moves all of its bytes."""
    tables = graph.tables
    kinds = np.empty(len(tables.first) - 1, np.int64)
    kinds[graph.sort] = graph.kind
    kind = np.repeat(kinds, np.diff(tables.first))
    dense = 2 * tables.loops[tables.row, :5].prod(axis=1) / paper[MATRIX]
    moved, work = (tables.written + tables.read) / paper[MEMORY], tables.work / paper[VECTOR]
    heavy = np.maximum(np.maximum(dense, moved), work)
    return np.where((kind == Kind.MATRIX) | (kind == Kind.REDUCE), heavy, work + FUSED * moved)


@compiled(runtime=False)
def _add(costs: NDArray, at: NDArray, prices: NDArray, first: NDArray, sort: NDArray, runs: NDArray) -> None:
    for v in range(len(at)):
        for s in range(first[sort[v] + 1] - first[sort[v]]):
            costs[at[v] + s] += runs[v] * prices[first[sort[v]] + s]


def _edges(graph: Graph, of: NDArray[np.int64], joins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return `(e, 4)`: producer, variable of the consumer, where its wish is in the table of wishes, and its stride.

    The table holds what is wanted, then the compact layouts, which outputs want, then each layout's own number.
    """
    tables, sort = graph.tables, graph.sort
    matters = (tables.layouts[sort] > 1) & (graph.kind != Kind.FREE)
    consumer = sort[graph.users]
    at, stride = tables.wants[consumer] + graph.operand, tables.places[consumer]
    at, stride = np.where(joins, len(tables.wanted) + len(tables.compact), at), np.where(joins, 1, stride)
    inner = of[graph.producers] == of[graph.users]
    kept = np.flatnonzero(matters[graph.producers] & ~inner)
    edges = np.column_stack([graph.producers, of[graph.users], at, stride])[kept]
    given = np.flatnonzero(matters & graph.output & (of > 0))
    wish = len(tables.wanted) + sort[given]
    outputs = np.column_stack([given, np.zeros_like(given), wish, np.zeros_like(given)])
    return np.unique(np.concatenate([edges, outputs]).astype(np.int64), axis=0)


@compiled(runtime=False)
def copy_price(q: int, layout: int, wanted: int, variables: Variables) -> float:
    """Return the price of a copy of a node that others take, from one layout to another, in all its runs."""
    if layout == wanted or wanted < 0:
        return 0.0
    seconds, array = variables.node[q, SECONDS], variables.node[q, ARRAY]
    turned = 0 if layout // seconds == wanted // seconds else 1
    return variables.array[array + layout] + variables.array[array + wanted] + variables.shift[q, turned]


@compiled(runtime=False)
def _fixed_copies(variables: Variables) -> None:
    """Add the copies of what has but one state to the costs of their consumers."""
    for q in range(variables.starts[1]):
        layout = variables.result[variables.node[q, RESULT]]
        for e in range(variables.node[q, START], variables.node[q, END]):
            x = variables.edge[e, CONSUMER]
            for s in range(variables.firsts[x + 1] - variables.firsts[x]):
                wish = variables.wanted[variables.edge[e, WISH] + s * variables.edge[e, STRIDE]]
                variables.costs[variables.firsts[x] + s] += copy_price(q, layout, wish, variables)
