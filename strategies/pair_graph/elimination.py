"""Exact minimisation over nearly all nodes of a graph at once, by eliminating one node after another.

Bucket elimination (Dechter 1999) with conditioning: a node is replaced by a table over its neighbours that holds its
least cost. Where such a table would be too large, a neighbour keeps the value that it has, and the others are minimised
exactly given that. On graphs of programs few nodes are kept, so that the move is far larger than that over an induced
forest, which is the case of tables with one dimension.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .bucket_tables import combine
from .buckets import MOST_FACTORS, MOST_NEAR, Work
from .network import Network

compiled = compiled_for(__file__)


@compiled()
def eliminate(
    network: Network, nodes: NDArray, config: NDArray, largest: float, shuffle: float, rng: Generator, work: Work
) -> int:
    """Set `config` to the exact minimum over all nodes but a few, which keep their values; return how many these are.

    Args:
      nodes: the cost of each value, with prices.
      config: `(d,)` places among the kept values.
      largest: entries of a table; what is kept is drawn among the nodes of a table that would be larger.
      shuffle: how far the order of elimination may be from greedy, in powers of e.
      rng: draws both.
      work: memory, from `buckets.work`.
    """
    d, logs, kept = len(network.sizes), np.log(network.sizes.astype(np.float64)), 0
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
        large = log > np.log(largest) or filled + rows > len(work.costs) or count > MOST_NEAR
        if large or factors > MOST_FACTORS:
            drawn = int(rng.random() * (count + 1))
            u = v if drawn == count else work.near[drawn]
            work.alive[u] = False
            kept += 1
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
    return kept


@compiled()
def _near(v: int, visit: int, network: Network, logs: NDArray, work: Work) -> tuple[int, float, int]:
    """Write the neighbours of a node; return how many, the logarithm of the entries of its table, and its factors."""
    count, log, factors = 0, logs[v], 0
    work.seen[v] = visit
    for k in range(network.rows[v], network.rows[v + 1]):
        e = network.edges[k]
        if not work.used[e]:
            u = network.second[e] if network.first[e] == v else network.first[e]
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
