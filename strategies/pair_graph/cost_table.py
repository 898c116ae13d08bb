"""What is known of all costs of nodes and edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Parts
from bbo_suite.compiled import compiled_for
from bbo_suite.core.task import Capacity
from bbo_suite.parts.table import PairDecomposition

from .network import IMPOSSIBLE, Pairs

compiled = compiled_for(__file__)


class CostTable:
    """The costs of the parts that were measured, by key.

    Attributes:
      costs: `(length,)`; nan for what was not measured yet, `IMPOSSIBLE` for what failed.
      length: the number of all costs.
    """

    def __init__(self, parts: PairDecomposition, capacity: Capacity | None) -> None:
        self._parts = parts
        self.costs = np.full(parts.length, np.nan)
        self.length = parts.length
        self._firsts = np.concatenate([[0], np.cumsum(parts.sizes)])
        self._usages = np.zeros(int(self._firsts[-1])) if capacity is None else capacity.usages.astype(np.float64)
        self._alone = np.flatnonzero(parts.second < 0)
        self._paired = np.flatnonzero(parts.second >= 0)
        ends = np.sort(np.stack([parts.first[self._paired], parts.second[self._paired]], axis=1), axis=1)
        self._pairs, self._edge_of = np.unique(ends, axis=0, return_inverse=True)
        areas = parts.sizes[self._pairs].prod(axis=1)
        self._starts, self._length = np.cumsum(areas) - areas, int(areas.sum())

    def learn(self, parts: Parts) -> int:
        """Take the costs of parts; return how many were not known."""
        keys = parts.keys.astype(np.int64)
        new = np.unique(keys[np.isnan(self.costs[keys])])
        self.costs[keys] = np.minimum(parts.costs, IMPOSSIBLE)
        return len(new)

    def pairs(self) -> Pairs:
        """Return all costs; what was not measured costs as much as the median of what was in its table."""
        sizes, parts = self._parts.sizes, self._parts
        guessed = self.costs.copy()
        areas = sizes[parts.first] * np.where(parts.second < 0, 1, sizes[parts.second])
        _guess(parts.starts, areas, guessed)
        nodes, tables = np.zeros(int(self._firsts[-1])), np.zeros(self._length)
        _sum_nodes(parts.first[self._alone], parts.starts[self._alone], sizes, self._firsts, guessed, nodes)
        ends = parts.first[self._paired], parts.second[self._paired], parts.starts[self._paired]
        edges = self._edge_of.reshape(-1)
        _sum_edges(*ends, sizes, edges, self._pairs, self._starts, guessed, tables)
        first, second = (np.ascontiguousarray(column) for column in self._pairs.T)
        tables, nodes = np.minimum(tables, IMPOSSIBLE), np.minimum(nodes, IMPOSSIBLE)
        return Pairs(sizes, self._firsts, nodes, self._usages, first, second, self._starts, tables)


@compiled()
def _guess(starts: NDArray, areas: NDArray, costs: NDArray) -> None:
    for i in range(len(starts)):
        table = costs[starts[i] : starts[i] + areas[i]]
        unknown = np.isnan(table)
        if unknown.any():
            measured = table[~unknown]
            measured = measured[measured < IMPOSSIBLE]
            table[unknown] = np.median(measured) if len(measured) else 0.0


@compiled()
def _sum_nodes(
    owners: NDArray, starts: NDArray, sizes: NDArray, firsts: NDArray, costs: NDArray, nodes: NDArray
) -> None:
    for k in range(len(owners)):
        for a in range(sizes[owners[k]]):
            nodes[firsts[owners[k]] + a] += costs[starts[k] + a]


@compiled()
def _sum_edges(
    first: NDArray,
    second: NDArray,
    starts: NDArray,
    sizes: NDArray,
    edges: NDArray,
    pairs: NDArray,
    places: NDArray,
    costs: NDArray,
    tables: NDArray,
) -> None:
    for k in range(len(first)):
        i, j, e = first[k], second[k], edges[k]
        forward = pairs[e, 0] == i
        for a in range(sizes[i]):
            for b in range(sizes[j]):
                place = a * sizes[j] + b if forward else b * sizes[i] + a
                tables[places[e] + place] += costs[starts[k] + a * sizes[j] + b]
