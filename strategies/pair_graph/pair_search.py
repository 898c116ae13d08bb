"""Measures the costs of nodes and edges, then searches on what is known of them."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Parts, Space, Structure
from bbo_suite.compiled import compiled_for
from bbo_suite.core.task import Capacity
from bbo_suite.parts.table import PairDecomposition

from .minimiser import Minimiser
from .network import IMPOSSIBLE, Pairs, edges_between

compiled = compiled_for(__file__)

_BATCH = 20
_EXPLORING = 0.5
"""The largest share of the budget for exploration."""
_STEPS = 3


class PairSearch:
    """The search for tasks whose parts depend on one or two parameters each.

    First come candidates with as many unknown parts as possible (`Exploration`): most of them fail where pairs are
    impossible, but they tell what pairs cost. When one would tell nothing new, or half of the budget is spent,
    candidates come from minimisation (`Minimiser`) on the costs that are known; where a cost is not, the median of
    those of its table stands for it until it is measured. When none can be better, the search learns what is still
    unknown, and ends when nothing is.

    Args:
      space: of the candidates.
      default: the first candidate.
      structure: with a `PairDecomposition`.
      budget: evaluations.
      rng: draws everything.
    """

    def __init__(self, space: Space, default: NDArray, structure: Structure, budget: int, rng: Generator) -> None:
        assert isinstance(structure.parts, PairDecomposition)
        self._space, self._rng, self._capacity = space, rng, structure.capacity
        self._table = CostTable(structure.parts, structure.capacity)
        self._exploration = Exploration(structure.parts, rng)
        self._budget, self._evaluated = budget, 0
        self._best, self._cost = default.astype(np.int64), np.inf
        self._minimiser: Minimiser | None = None
        self._explores = True

    def ask(self, n: int) -> NDArray:
        """Return at most 20 candidates: the default, explorations, ends of a few steps; none if the best is proven."""
        if not self._evaluated:
            return self._best[None].astype(self._space.dtype)
        rows: list[NDArray] = []
        if self._minimiser is not None and self._minimiser.is_proven and self._minimiser.cost >= self._cost:
            if not np.isnan(self._table.costs).any():
                return np.empty((0, len(self._best)), self._space.dtype)
            return np.array([self._exploration.draw()[0] for _ in range(min(n, _BATCH))], self._space.dtype)
        while self._explores and len(rows) < min(n, _BATCH):
            config, found = self._exploration.draw()
            self._explores = found > 0 and self._evaluated + len(rows) < _EXPLORING * self._budget
            rows.append(config)
        return np.array(rows or self._minimised(min(n, _STEPS)), self._space.dtype)

    def _minimised(self, n: int) -> list[NDArray]:
        """Return the candidates of n steps, or the best of all steps so far if it was not measured."""
        if self._minimiser is None:
            self._minimiser = Minimiser(self._table.pairs(), self._capacity, self._best, self._rng)
        ends = [self._minimiser.step() for _ in range(n)]
        return [self._minimiser.best] if self._minimiser.cost < self._cost else ends

    def tell(self, configs: NDArray, values: NDArray[np.float64], parts: Parts) -> None:
        """Learn the costs of candidates and of their parts."""
        self._evaluated += len(values)
        new = self._table.learn(parts)
        best = int(values.argmin())
        if values[best] < self._cost:
            self._best, self._cost = configs[best].astype(np.int64), float(values[best])
        if new and self._minimiser is not None:
            self._minimiser.learn(self._table.pairs(), self._best)

    def diagnostics(self) -> dict[str, float]:
        """Return the share of all costs of nodes and edges that is known."""
        return {"known": float(1 - np.isnan(self._table.costs).mean())}


class Exploration:
    """Draws candidates greedily: each node, in random order, takes the value with the most unknown parts.

    These are its own parts, and its pairs with the nodes before it. Parts of a candidate that was drawn count as known.
    """

    def __init__(self, parts: PairDecomposition, rng: Generator) -> None:
        self._parts, self._rng = parts, rng
        paired = np.flatnonzero(parts.second >= 0)
        ends = np.concatenate([parts.first, parts.second[paired]])
        order = np.argsort(ends, kind="stable")
        self._owned = np.concatenate([np.arange(len(parts.first)), paired])[order]
        self._rows = np.searchsorted(ends[order], np.arange(len(parts.sizes) + 1))
        self._known = np.zeros(parts.length, bool)

    def draw(self) -> tuple[NDArray[np.int64], int]:
        """Return a `(d,)` candidate and how many unknown parts it has."""
        parts, order = self._parts, self._rng.permutation(len(self._parts.sizes))
        config = np.full(len(order), -1)
        first_tried = self._rng.integers(0, parts.sizes)
        found = _draw(
            order, first_tried, parts.sizes, parts.first, parts.second, parts.starts, self._rows, self._owned,
            self._known, config,
        )  # fmt: skip
        return config, found


@compiled()
def _draw(
    order: NDArray,
    first_tried: NDArray,
    sizes: NDArray,
    first: NDArray,
    second: NDArray,
    starts: NDArray,
    rows: NDArray,
    owned: NDArray,
    known: NDArray,
    config: NDArray,
) -> int:
    total = 0
    for i in order:
        best, most = first_tried[i], -1
        for k in range(sizes[i]):
            a = (first_tried[i] + k) % sizes[i]
            config[i] = a
            unknown = 0
            for q in range(rows[i], rows[i + 1]):
                place = _place(owned[q], sizes, first, second, starts, config)
                unknown += place >= 0 and not known[place]
            if unknown > most:
                best, most = a, unknown
        config[i] = best
        total += most
        for q in range(rows[i], rows[i + 1]):
            place = _place(owned[q], sizes, first, second, starts, config)
            if place >= 0:
                known[place] = True
    return total


@compiled(runtime=False)
def _place(part: int, sizes: NDArray, first: NDArray, second: NDArray, starts: NDArray, config: NDArray) -> int:
    """Return the key of a part; -1 if one of its nodes has no value yet."""
    a, j = config[first[part]], second[part]
    if j < 0:
        return starts[part] + a
    return -1 if a < 0 or config[j] < 0 else starts[part] + a * sizes[j] + config[j]


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
        self._edges = edges_between(parts.sizes, parts.first[self._paired], parts.second[self._paired])

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
        nodes, tables = np.zeros(int(self._firsts[-1])), np.zeros(self._edges.length)
        _sum_nodes(parts.first[self._alone], parts.starts[self._alone], sizes, self._firsts, guessed, nodes)
        ends = parts.first[self._paired], parts.second[self._paired], parts.starts[self._paired]
        edges = self._edges
        _sum_edges(*ends, sizes, edges.of, edges.first, edges.starts, guessed, tables)
        tables, nodes = np.minimum(tables, IMPOSSIBLE), np.minimum(nodes, IMPOSSIBLE)
        return Pairs(sizes, self._firsts, nodes, self._usages, edges.first, edges.second, edges.starts, tables)


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
    firsts: NDArray,
    places: NDArray,
    costs: NDArray,
    tables: NDArray,
) -> None:
    for k in range(len(first)):
        i, j, e = first[k], second[k], edges[k]
        forward = firsts[e] == i
        for a in range(sizes[i]):
            for b in range(sizes[j]):
                place = a * sizes[j] + b if forward else b * sizes[i] + a
                tables[places[e] + place] += costs[starts[k] + a * sizes[j] + b]
