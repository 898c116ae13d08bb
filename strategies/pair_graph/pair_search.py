"""Measures the costs of nodes and edges, then searches on what is known of them, within a capacity.

The search descends by moves that set nearly all nodes at once.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Parts, Space, Structure
from bbo_suite.compiled import compiled_for
from bbo_suite.core.task import Capacity
from bbo_suite.parts.table import PairDecomposition

from ..graphs import differing
from .bounds import Ascent, Multipliers, Remaining, used
from .elimination import eliminate, work
from .network import IMPOSSIBLE, Pairs, active_values, ceiling, edges_between, total

_ENTRIES = 20_000_000
_TOGETHER, _LARGEST = 1e9, (1e4, 1e6)
_SHUFFLE = 0.5
_ROUND = 12
_ENTRIES_SWEPT, _SWEEPS = 3e6, (1, 100)
"""Entries that the sweeps of one step visit, and how many sweeps these are."""
_STILL, _SHAKES = 3, (-4.0, -1.5)
"""One step in so many is not perturbed; the others by a share of the best cost, of which this is the logarithm."""
_EXACT = 1e-9
"""Costs that differ by less, relatively, are the same."""
_SOLVED, _NODES = 200_000, 64
"""Entries of tables that an exact solver is given, and the nodes of its first search tree; each next one has twice."""


class Minimiser:
    """Searches an assignment of least cost within a capacity.

    Nodes that determine each other are one (`Remaining`). Costs contain what a value pays for the capacity
    (`Multipliers`). Rounds of three kinds take turns:
      - An *ascent* raises a lower bound until it stalls (`Ascent`); each sweep leaves a candidate. What cannot be in a
        candidate that is cheaper than the best is left out from then on.
      - If little is left, an exact solver looks for the best of it, for a while (`minimise`).
      - *Eliminations* set all nodes but a few to the exact minimum given those few, which are drawn anew (`eliminate`);
        two of three steps see perturbed costs (perturb and MAP, Papandreou and Yuille 2011).

    The end of each step is crossed with the best candidate, component by component (`cross`).

    Args:
      pairs: the costs.
      capacity: what limits the candidates, if anything.
      config: `(d,)` a first candidate.
      rng: draws everything.
      largest: entries of a table; by default as many as a step can afford.

    Attributes:
      best: `(d,)` the best candidate so far.
      cost: its cost, inf if it is impossible or above the capacity.
      is_proven: whether no candidate is cheaper, by these costs.
    """

    def __init__(
        self,
        pairs: Pairs,
        capacity: Capacity | None,
        config: NDArray,
        rng: Generator,
        largest: float | None = None,
    ) -> None:
        self._capacity, self._rng = capacity, rng
        self._largest = largest or float(np.clip(_TOGETHER / len(pairs.sizes), *_LARGEST))
        self._multipliers = Multipliers(capacity, pairs.sizes)
        self.learn(pairs, config)

    def learn(self, pairs: Pairs, config: NDArray) -> None:
        """Continue with other costs, from a `(d,)` candidate; the multipliers stay."""
        self._pairs, self.cost, self.is_proven = pairs, np.inf, False
        self.best = np.array(config, np.int64)
        self._may_be = np.ones(len(pairs.nodes), bool)
        self._ceiling, self._nodes = ceiling(pairs), _NODES
        self._record(self.best)
        self._begin_ascent()

    def step(self) -> NDArray[np.int64]:
        """Make one step and return its `(d,)` candidate, which may be impossible or exceed the capacity."""
        if self._steps > _ROUND and not self.is_proven:
            self._begin_ascent()
        if self.is_proven:
            return self.best
        if self._ascent.rises:
            found = self._ascend()
        else:
            self._steps += 1
            found = self._solve() if self._steps == 1 else self._eliminate()
        self._record(cross(self._pairs, self._capacity, self.best, found))
        return found

    @property
    def _most(self) -> float:
        """Only candidates that cost less are of interest."""
        most = min(self.cost, self._ceiling)
        return most - _EXACT * abs(most)

    def _begin_ascent(self) -> None:
        """Leave out what cannot be in a better candidate, and begin at the best."""
        self._state, self._total, self._steps = self.best, total(self._pairs, self.best), 0
        active = self._may_be & active_values(self._pairs, min(self.cost, IMPOSSIBLE / 2))
        self.is_proven = not np.logical_or.reduceat(active, self._pairs.firsts[:-1]).all()
        if not self.is_proven:
            self._left = Remaining(self._pairs, active)
            self._work = work(self._left.small, _ENTRIES)
            self._ascent = Ascent(self._left, self._multipliers, min(self.cost, self._ceiling))

    def _ascend(self) -> NDArray[np.int64]:
        """Sweep several times; return the cheapest candidate."""
        entries = len(self._left.small.tables) + len(self._pairs.nodes)
        cheapest, least = self._state, np.inf
        for _ in range(int(np.clip(_ENTRIES_SWEPT / entries, *_SWEEPS))):
            state = self._ascent.sweep()
            cost = self._record(state)
            if cost <= least:
                cheapest, least = state, cost
            self._may_be[self._ascent.follow(state, self._most)] = False
            if not self._ascent.rises:
                break
        self._prove(self._ascent.bound)
        self._state = cheapest
        return cheapest

    def _solve(self) -> NDArray[np.int64]:
        """Let an exact solver look for the best of what is left, if that is little; return its candidate."""
        if len(self._left.small.tables) > _SOLVED:
            return self._eliminate()
        found = self._left.solve(self._capacity, self._nodes)
        self._nodes *= 2
        if found.config is not None:
            self._state = found.config
            self._record(self._state)
        self._prove(found.bound)
        return self._state

    def _eliminate(self) -> NDArray[np.int64]:
        """Set all nodes but a few to the exact minimum."""
        more = self._multipliers.of_values()
        if self._steps % _STILL:
            scale = min(self.cost, self._total) * 10 ** self._rng.uniform(*_SHAKES)
            more += scale * self._rng.gumbel(size=len(more))
        config, small = self._left.project(self._state), self._left.small
        eliminate(small, self._left.nodes(more), config, self._largest, _SHUFFLE, self._rng, self._work)
        self._state = self._left.expand(config)
        self._total = total(self._pairs, self._state)
        self._multipliers.follow(self._state, min(self._total, self.cost))
        self._record(self._state)
        return self._state

    def _prove(self, bound: float) -> None:
        """Take note that no candidate that is left costs less than a bound."""
        self.is_proven = self.is_proven or bound >= self._most

    def _record(self, config: NDArray) -> float:
        """Return the cost of a candidate, inf if it is impossible or above the capacity; remember the best."""
        cost = total(self._pairs, config)
        cost = cost if cost < IMPOSSIBLE and self._multipliers.fits(config) else np.inf
        if cost < self.cost:
            self.best, self.cost = config.copy(), cost
        return cost


_TRIED = 100
"""Components that are tried one after another where all together exceed the capacity."""


def cross(
    pairs: Pairs, capacity: Capacity | None, best: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the cheapest mixture of two `(d,)` candidates (partition crossover, Whitley et al. 2009).

    The nodes in which they differ fall into components that no edge joins, so that each gains on its own. Where the
    capacity does not allow all that gain, those that gain most come first.

    Args:
      pairs: the costs.
      capacity: which `best` does not exceed.
      best: a candidate.
      other: any other one.
    """
    labels = differing(pairs.first, pairs.second, best != other)
    gains = _gains(pairs, best, other, labels)
    good = np.argsort(gains, kind="stable")[: np.count_nonzero(gains < 0)]
    mixed = np.where(np.isin(labels, good), other, best)
    if capacity is None or used(capacity, mixed).max() <= capacity.limit:
        return mixed
    return np.where(np.isin(labels, _fitting(capacity, best, other, labels, good[:_TRIED])), other, best)


def _gains(pairs: Pairs, best: NDArray, other: NDArray, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return by how much each component costs more with the other candidate's values."""
    count, nodes = int(labels.max()) + 1, np.flatnonzero(labels >= 0)
    places = pairs.firsts[:-1][nodes]
    more = pairs.nodes[places + other[nodes]] - pairs.nodes[places + best[nodes]]
    owners = np.maximum(labels[pairs.first], labels[pairs.second])
    edges = np.flatnonzero(owners >= 0)
    first, second, starts = pairs.first[edges], pairs.second[edges], pairs.starts[edges]
    after, before = (
        pairs.tables[starts + config[first] * pairs.sizes[second] + config[second]] for config in (other, best)
    )
    gains = np.bincount(owners[edges], after - before, count).astype(np.float64)
    return gains + np.bincount(labels[nodes], more, count)


def _fitting(
    capacity: Capacity, best: NDArray, other: NDArray, labels: NDArray[np.int64], good: NDArray[np.int64]
) -> list[int]:
    """Return those of some components that fit together, each next one if it fits."""
    free, firsts = capacity.limit - used(capacity, best), capacity.firsts[:-1]
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 2))
    taken: list[int] = []
    for component in good.tolist():
        nodes = order[starts[component] : starts[component + 1]]
        nodes = nodes[capacity.begins[nodes] < capacity.ends[nodes]]
        more = capacity.usages[firsts[nodes] + other[nodes]] - capacity.usages[firsts[nodes] + best[nodes]]
        change = np.zeros(len(free), np.int64)
        np.add.at(change, capacity.begins[nodes], more)
        np.add.at(change, capacity.ends[nodes], -more)
        change = np.cumsum(change)
        if (change <= free).all():
            free, taken = free - change, [*taken, component]
    return taken


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
