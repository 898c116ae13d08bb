"""Exact minimisation over nearly all nodes of a graph at once, by eliminating one node after another.

Bucket elimination (Dechter 1999) with conditioning: a node is replaced by a table over its neighbours that holds its
least cost. Where such a table would be too large, a neighbour keeps the value that it has, and the others are minimised
exactly given that. On graphs of programs few nodes are fixed, so that the move is far larger than that over an induced
forest, which is the case of tables with one dimension.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .network import Network, other_end, strides

compiled = compiled_for(__file__)

_MOST_NEAR, _MOST_FACTORS = 24, 96
"""Neighbours of a node that is eliminated, and edges and tables that it has."""


class Work(NamedTuple):
    """Memory for one elimination.

    Attributes:
      alive: `(d,)` true for nodes that are neither eliminated nor fixed.
      seen: `(d,)` the number of the last visit of each node.
      used: `(m,)` true for edges that are part of an eliminated table.
      near: the neighbours of the node that is eliminated.
      scopes, begins, lengths: the nodes of derived table f are `scopes[begins[f]:begins[f] + lengths[f]]`.
      offsets: where each derived table begins in `costs`; -1 once it is part of another.
      heads, nexts, holders: the derived tables of each node, as linked lists.
      costs: the derived tables.
      choices: the best value of an eliminated node for each entry of its table.
    """

    alive: NDArray[np.bool_]
    seen: NDArray[np.int64]
    used: NDArray[np.bool_]
    near: NDArray[np.int64]
    scopes: NDArray[np.int64]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]
    offsets: NDArray[np.int64]
    heads: NDArray[np.int64]
    nexts: NDArray[np.int64]
    holders: NDArray[np.int64]
    costs: NDArray[np.float64]
    choices: NDArray[np.int16]


def work(network: Network, entries: int) -> Work:
    """Return memory for tables of up to so many entries together."""
    d, integers = len(network.sizes), np.int64
    scopes = _MOST_NEAR * d + 64
    return Work(
        np.empty(d, bool),
        np.empty(d, integers),
        np.empty(len(network.first), bool),
        np.empty(d + 1, integers),
        np.empty(scopes, integers),
        np.empty(d, integers),
        np.empty(d, integers),
        np.empty(d, integers),
        np.empty(d, integers),
        np.empty(scopes, integers),
        np.empty(scopes, integers),
        np.empty(entries),
        np.empty(entries, np.int16),
    )


@compiled()
def eliminate(
    network: Network, nodes: NDArray, config: NDArray, largest: float, shuffle: float, rng: Generator, work: Work
) -> int:
    """Set `config` to the exact minimum over all nodes but a few, which keep their values; return how many these are.

    Args:
      nodes: the cost of each value, with what the capacity costs.
      config: `(d,)` places among the active values.
      largest: entries of a table; what is fixed is drawn among the nodes of a table that would be larger.
      shuffle: how far the order of elimination may be from greedy, in powers of e.
      rng: draws both.
      work: memory, from `work`.
    """
    d, logs, fixed = len(network.sizes), np.log(network.sizes.astype(np.float64)), 0
    work.alive[:] = network.sizes > 1
    work.seen[:] = 0
    work.used[:] = False
    work.heads[:] = -1
    order, done, scoped, filled, linked, visit = np.empty(d, np.int64), 0, 0, 0, 0, 0
    heap = [(0.0, 0)]
    heap.pop()
    for v in range(d):
        if work.alive[v]:
            visit += 1
            heapq.heappush(heap, (_near(v, visit, network, logs, work)[1] + shuffle * rng.random(), v))
    while len(heap):
        expected, v = heapq.heappop(heap)
        if not work.alive[v]:
            continue
        visit += 1
        count, log, factors = _near(v, visit, network, logs, work)
        if log > expected + 1e-9 and len(heap) and log > heap[0][0] + shuffle:
            heapq.heappush(heap, (log, v))
            continue
        rows = np.exp(log - logs[v])
        large = log > np.log(largest) or filled + rows > len(work.costs) or count > _MOST_NEAR
        if large or factors > _MOST_FACTORS:
            drawn = int(rng.random() * (count + 1))
            u = v if drawn == count else work.near[drawn]
            work.alive[u] = False
            fixed += 1
            if u != v:
                heapq.heappush(heap, (log - logs[u], v))
            continue
        near = work.near[:count].copy()
        for q in range(count - 1):  # the inner loop is over the node with most values
            if network.sizes[near[q]] > network.sizes[near[-1]]:
                near[q], near[-1] = near[-1], near[q]
        work.scopes[scoped : scoped + count] = near
        work.begins[v], work.lengths[v], work.offsets[v] = scoped, count, filled
        filled += combine(v, near, filled, network, nodes, config, work)
        scoped += count
        work.alive[v] = False
        order[done] = v
        done += 1
        for u in near:
            work.holders[linked], work.nexts[linked], work.heads[u] = v, work.heads[u], linked
            linked += 1
        for u in near:
            visit += 1
            heapq.heappush(heap, (_near(u, visit, network, logs, work)[1] + shuffle * rng.random(), u))
    _set_back(order[:done], network, config, work)
    return fixed


@compiled()
def _near(v: int, visit: int, network: Network, logs: NDArray, work: Work) -> tuple[int, float, int]:
    """Write the neighbours of a node; return how many, the logarithm of the entries of its table, and its factors."""
    count, log, factors = 0, logs[v], 0
    work.seen[v] = visit
    for k in range(network.rows[v], network.rows[v + 1]):
        e = network.edges[k]
        if not work.used[e]:
            u = other_end(v, e, network)
            factors += work.alive[u]
            if work.alive[u] and work.seen[u] != visit:
                work.seen[u], work.near[count] = visit, u
                count, log = count + 1, log + logs[u]
    k = work.heads[v]
    while k >= 0:
        f = work.holders[k]
        factors += work.offsets[f] >= 0 and work.lengths[f] > 1
        for q in range(work.begins[f], work.begins[f] + work.lengths[f] if work.offsets[f] >= 0 else 0):
            u = work.scopes[q]
            if work.alive[u] and work.seen[u] != visit:
                work.seen[u], work.near[count] = visit, u
                count, log = count + 1, log + logs[u]
        k = work.nexts[k]
    return count, log, factors


@compiled()
def _set_back(order: NDArray, network: Network, config: NDArray, work: Work) -> None:
    """Set the eliminated nodes, the last one first."""
    for v in order[::-1]:
        place = 0
        for q in range(work.begins[v], work.begins[v] + work.lengths[v]):
            place = place * network.sizes[work.scopes[q]] + config[work.scopes[q]]
        offset = work.offsets[v]
        config[v] = work.choices[(-1 - offset if offset < 0 else offset) + place]


@compiled()
def combine(v: int, near: NDArray, filled: int, network: Network, nodes: NDArray, config: NDArray, work: Work) -> int:
    """Write the table of the least cost of a node for all values of its neighbours; return its length."""
    count, width = len(near), network.sizes[v]
    for q in range(count):
        work.seen[near[q]] = -1 - q
    alone = nodes[network.firsts[v] : network.firsts[v] + width].copy()
    steps = np.zeros((_MOST_FACTORS, count + 1), np.int64)
    places, derived = np.empty(_MOST_FACTORS, np.int64), np.zeros(_MOST_FACTORS, np.bool_)
    factors = _take_edges(v, count, network, config, work, alone, steps, places)
    factors = _take_tables(v, count, factors, network, config, work, alone, steps, places, derived)
    rows = 1
    for u in near:
        rows *= network.sizes[u]
    last = max(0, count - 1)
    turns = network.sizes[near[last]] if count else 1
    index, outer, sums = np.zeros(count, np.int64), np.empty(width), np.empty(width)
    for row in range(rows):
        if row % turns == 0:
            outer[:] = alone
            _add(outer, factors, steps, last, False, places, derived, network.tables, work.costs)
        sums[:] = outer
        _add(sums, factors, steps, last, True, places, derived, network.tables, work.costs)
        best = 0
        for a in range(1, width):
            if sums[a] < sums[best]:
                best = a
        work.costs[filled + row], work.choices[filled + row] = sums[best], best
        for q in range(count - 1, -1, -1):
            index[q] += 1
            turn = index[q] == network.sizes[near[q]]
            if turn:
                index[q] = 0
            back = network.sizes[near[q]] - 1 if turn else -1
            for f in range(factors):
                places[f] -= back * steps[f, q]
            if not turn:
                break
    return rows


@compiled(runtime=False)
def _add(
    sums: NDArray,
    factors: int,
    steps: NDArray,
    last: int,
    inner: bool,
    places: NDArray,
    derived: NDArray,
    tables: NDArray,
    costs: NDArray,
) -> None:
    """Add the costs of those factors that change in the inner loop, or of the others."""
    width, mine = len(sums), steps.shape[1] - 1
    for f in range(factors):
        if (mine > 0 and steps[f, last] != 0) != inner:
            continue
        step, place = steps[f, mine], places[f]
        if derived[f]:
            for a in range(width):
                sums[a] += costs[place + step * a]
        else:
            for a in range(width):
                sums[a] += tables[place + step * a]


@compiled()
def _take_edges(
    v: int, count: int, network: Network, config: NDArray, work: Work, alone: NDArray, steps: NDArray, places: NDArray
) -> int:
    """Take the edges of a node; those to nodes that are fixed become part of its own costs."""
    factors, width = 0, network.sizes[v]
    for k in range(network.rows[v], network.rows[v + 1]):
        e = network.edges[k]
        if work.used[e]:
            continue
        work.used[e] = True
        u = other_end(v, e, network)
        mine, other = strides(v, e, network)
        if work.alive[u]:
            steps[factors, count], steps[factors, -1 - work.seen[u]] = mine, other
            places[factors] = network.starts[e]
            factors += 1
        else:
            for a in range(width):
                alone[a] += network.tables[network.starts[e] + other * config[u] + mine * a]
    return factors


@compiled()
def _take_tables(
    v: int,
    count: int,
    factors: int,
    network: Network,
    config: NDArray,
    work: Work,
    alone: NDArray,
    steps: NDArray,
    places: NDArray,
    derived: NDArray,
) -> int:
    """Take the derived tables of a node."""
    k = work.heads[v]
    while k >= 0:
        f = work.holders[k]
        k = work.nexts[k]
        if work.offsets[f] < 0:
            continue
        step, mine, place, joins = 1, 0, work.offsets[f], False
        steps[factors] = 0
        for q in range(work.begins[f] + work.lengths[f] - 1, work.begins[f] - 1, -1):
            u = work.scopes[q]
            if u == v:
                mine = step
            elif work.alive[u]:
                steps[factors, -1 - work.seen[u]] = step
                joins = True
            else:
                place += step * config[u]
            step *= network.sizes[u]
        if joins:
            steps[factors, count], places[factors], derived[factors] = mine, place, True
            factors += 1
        else:
            for a in range(network.sizes[v]):
                alone[a] += work.costs[place + mine * a]
        work.offsets[f] = -1 - work.offsets[f]
    return factors
