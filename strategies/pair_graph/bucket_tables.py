"""The table of the least cost of a node for all values of its neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .buckets import MOST_FACTORS, Work
from .network import Network

compiled = compiled_for(__file__)


@compiled()
def combine(v: int, near: NDArray, filled: int, network: Network, nodes: NDArray, config: NDArray, work: Work) -> int:
    """Write the table of the least cost of a node for all values of its neighbours; return its length."""
    count, width = len(near), network.sizes[v]
    for q in range(count):
        work.seen[near[q]] = -1 - q
    alone = nodes[network.firsts[v] : network.firsts[v] + width].copy()
    steps = np.zeros((MOST_FACTORS, count + 1), np.int64)
    places, derived = np.empty(MOST_FACTORS, np.int64), np.zeros(MOST_FACTORS, np.bool_)
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
    """Take the edges of a node; those to nodes that are kept become part of its own costs."""
    factors, width = 0, network.sizes[v]
    for k in range(network.rows[v], network.rows[v + 1]):
        e = network.edges[k]
        if work.used[e]:
            continue
        work.used[e] = True
        is_first = network.first[e] == v
        u = network.second[e] if is_first else network.first[e]
        mine, other = (network.sizes[u], 1) if is_first else (1, width)
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
