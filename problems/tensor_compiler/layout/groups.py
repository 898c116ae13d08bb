"""Groups of operations that always have the same layout; each group is one variable of propagation.

Element-wise operations that feed one another form a group; a tuned operation, a reduction or a transpose is a variable
of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..graph.graph import ProgramGraph, Tables
from .graph_arrays import GraphArrays, GraphEdge

compiled = compiled_for(__file__)


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
