"""Graphs of pair costs: all costs of all values, or only those values that may be in a good candidate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

compiled = compiled_for(__file__)


IMPOSSIBLE = 1e18
"""Stands for an infinite cost, so that sums say how many there are."""


class Pairs(NamedTuple):
    """All costs of d nodes and m edges; no two edges join the same nodes.

    Attributes:
      sizes: `(d,)` the number of values of each node.
      firsts: `(d + 1,)` where the values of each node begin.
      nodes: `(sum of sizes,)` the cost of each value.
      usages: `(sum of sizes,)` what each value uses of the capacity; zeros if nothing is limited.
      first, second: `(m,)` the nodes of each edge.
      starts: `(m,)` where the table of each edge begins, `(sizes[first], sizes[second])` in rows.
      tables: the costs of all edges, at most `IMPOSSIBLE`.
    """

    sizes: NDArray[np.int64]
    firsts: NDArray[np.int64]
    nodes: NDArray[np.float64]
    usages: NDArray[np.float64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    starts: NDArray[np.int64]
    tables: NDArray[np.float64]


def around(d: int, first: NDArray[np.int64], second: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges of each node as compressed rows."""
    ends, owners = np.concatenate([first, second]), np.tile(np.arange(len(first)), 2)
    order = np.argsort(ends, kind="stable")
    return np.searchsorted(ends[order], np.arange(d + 1)).astype(np.int64), owners[order].astype(np.int64)


class Edges(NamedTuple):
    """The edges between nodes of which several may join the same two.

    Attributes:
      first, second: `(m,)` the nodes of each edge, the smaller first; no two edges join the same nodes.
      starts: `(m,)` where the table of each edge begins.
      length: of all tables.
      of: `(k,)` the edge of each of the k pairs of ends.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    starts: NDArray[np.int64]
    length: int
    of: NDArray[np.int64]


def edges_between(sizes: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> Edges:
    """Return the edges of a graph, given the `(k,)` ends of what shall be one edge if it joins the same nodes."""
    ends = np.sort(np.stack([first, second], axis=1), axis=1)
    found, of = np.unique(ends, axis=0, return_inverse=True)
    areas = sizes[found].prod(axis=1)
    one, other = (np.ascontiguousarray(column) for column in found.T)
    return Edges(one, other, np.cumsum(areas) - areas, int(areas.sum()), of.reshape(-1))


def active_values(pairs: Pairs, most: float) -> NDArray[np.bool_]:
    """Return which values may be in a candidate that costs at most `most`.

    A value is left out if it and the cheapest entries of its edges cost more, or if another value of the node costs no
    more next to any value of any neighbour (dead-end elimination, Desmet et al. 1992) and uses no more capacity.
    """
    d = len(pairs.sizes)
    active = np.ones(len(pairs.nodes), bool)
    _reduce(pairs, *around(d, pairs.first, pairs.second), most, active)
    return active


@compiled()
def _reduce(pairs: Pairs, rows: NDArray, edges: NDArray, most: float, active: NDArray) -> None:
    d = len(pairs.sizes)
    queue, waiting = np.arange(d), np.ones(d, np.bool_)
    head, count = 0, d
    while count:
        i = queue[head]
        head, count = (head + 1) % d, count - 1
        waiting[i] = False
        if _bound(i, pairs, rows, edges, most, active) + _dominate(i, pairs, rows, edges, active):
            for k in range(rows[i], rows[i + 1]):
                j = other_end(i, edges[k], pairs)
                if not waiting[j]:
                    waiting[j] = True
                    queue[(head + count) % d] = j
                    count += 1


@compiled(runtime=False)
def other_end(i: int, e: int, graph: Pairs | Network) -> int:
    """Return the node that an edge of node i joins to it."""
    return graph.second[e] if graph.first[e] == i else graph.first[e]


@compiled(runtime=False)
def strides(i: int, e: int, graph: Pairs | Network) -> tuple[int, int]:
    """Return how far apart the values of node i, and those of the other node, are in the table of an edge."""
    if graph.first[e] == i:
        return graph.sizes[graph.second[e]], 1
    return 1, graph.sizes[i]


@compiled(runtime=False)
def _entry(i: int, a: int, b: int, e: int, pairs: Pairs) -> float:
    """Return the cost of an edge if node i has value a and its other node b."""
    step, across = strides(i, e, pairs)
    return pairs.tables[pairs.starts[e] + a * step + b * across]


@compiled(runtime=False)
def _bound(i: int, pairs: Pairs, rows: NDArray, edges: NDArray, most: float, active: NDArray) -> int:
    removed, left = 0, 0
    for a in range(pairs.sizes[i]):
        left += active[pairs.firsts[i] + a]
    for a in range(pairs.sizes[i]):
        if not active[pairs.firsts[i] + a] or left == 1:
            continue
        least = pairs.nodes[pairs.firsts[i] + a]
        for k in range(rows[i], rows[i + 1]):
            j, cheapest = other_end(i, edges[k], pairs), np.inf
            for b in range(pairs.sizes[j]):
                if active[pairs.firsts[j] + b]:
                    cheapest = min(cheapest, _entry(i, a, b, edges[k], pairs) + pairs.nodes[pairs.firsts[j] + b])
            least += cheapest
            if least > most:
                break
        if least > most:
            active[pairs.firsts[i] + a] = False
            removed, left = removed + 1, left - 1
    return removed


@compiled(runtime=False)
def _dominate(i: int, pairs: Pairs, rows: NDArray, edges: NDArray, active: NDArray) -> int:
    removed, start = 0, pairs.firsts[i]
    for a in range(pairs.sizes[i]):
        for b in range(pairs.sizes[i]):
            if not active[start + a]:
                break
            if a != b and active[start + b] and pairs.usages[start + b] <= pairs.usages[start + a]:
                worst = pairs.nodes[start + b] - pairs.nodes[start + a]
                for k in range(rows[i], rows[i + 1]):
                    if worst > 0:
                        break
                    worst += _worst(i, a, b, edges[k], pairs, active)
                if worst <= 0:
                    active[start + a] = False
                    removed += 1
    return removed


@compiled(runtime=False)
def _worst(i: int, a: int, b: int, e: int, pairs: Pairs, active: NDArray) -> float:
    """Return by how much an edge can cost more with value b than with a."""
    j, most = other_end(i, e, pairs), -np.inf
    for c in range(pairs.sizes[j]):
        if active[pairs.firsts[j] + c]:
            cost = _entry(i, a, c, e, pairs)
            if cost < IMPOSSIBLE:
                most = max(most, _entry(i, b, c, e, pairs) - cost)
    return most


class Network(NamedTuple):
    """The active values of a graph of pair costs.

    Attributes:
      values: the active values of node i are `values[firsts[i]:firsts[i + 1]]`.
      places: where they are in `Pairs.nodes`.
      sizes, firsts, nodes, first, second, starts, tables: as in `Pairs`, of the active values; an edge with a node of
        one value is part of the costs of the other node.
      rows, edges: the edges of node i are `edges[rows[i]:rows[i + 1]]`.
    """

    values: NDArray[np.int64]
    places: NDArray[np.int64]
    sizes: NDArray[np.int64]
    firsts: NDArray[np.int64]
    nodes: NDArray[np.float64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    starts: NDArray[np.int64]
    tables: NDArray[np.float64]
    rows: NDArray[np.int64]
    edges: NDArray[np.int64]


def network(pairs: Pairs, active: NDArray[np.bool_]) -> Network:
    """Return the graph with the active values only; each node must keep one."""
    places = np.flatnonzero(active)
    sizes = np.add.reduceat(active, pairs.firsts[:-1], dtype=np.int64)
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    values = places - np.repeat(pairs.firsts[:-1], sizes)
    nodes = pairs.nodes[places].copy()
    areas = np.where((sizes[pairs.first] > 1) & (sizes[pairs.second] > 1), sizes[pairs.first] * sizes[pairs.second], 0)
    starts = np.cumsum(areas) - areas
    tables = np.empty(int(areas.sum()))
    _fill(pairs, values, sizes, firsts, areas, starts, nodes, tables)
    stay = np.flatnonzero(areas)
    first, second = pairs.first[stay], pairs.second[stay]
    rows = around(len(sizes), first, second)
    return Network(values, places, sizes, firsts, nodes, first, second, starts[stay], tables, *rows)


@compiled()
def _fill(
    pairs: Pairs,
    values: NDArray,
    sizes: NDArray,
    firsts: NDArray,
    areas: NDArray,
    starts: NDArray,
    nodes: NDArray,
    tables: NDArray,
) -> None:
    for e in range(len(areas)):
        i, j = pairs.first[e], pairs.second[e]
        for a in range(sizes[i]):
            for b in range(sizes[j]):
                cost = _entry(i, values[firsts[i] + a], values[firsts[j] + b], e, pairs)
                if areas[e]:
                    tables[starts[e] + a * sizes[j] + b] = cost
                elif sizes[i] > 1:
                    nodes[firsts[i] + a] += cost
                else:
                    nodes[firsts[j] + b] += cost


def total(pairs: Pairs, config: NDArray) -> float:
    """Return the cost of a `(d,)` candidate; inf if it is impossible."""
    edges = pairs.starts + config[pairs.first] * pairs.sizes[pairs.second] + config[pairs.second]
    return float(pairs.nodes[pairs.firsts[:-1] + config].sum() + pairs.tables[edges].sum())


def ceiling(pairs: Pairs) -> float:
    """Return what no possible candidate exceeds."""
    groups = (pairs.tables, pairs.starts), (pairs.nodes, pairs.firsts[:-1])
    return 1.0 + sum(
        float(np.maximum.reduceat(np.where(costs < IMPOSSIBLE, costs, 0.0), starts).sum())
        for costs, starts in groups
        if len(costs)
    )
