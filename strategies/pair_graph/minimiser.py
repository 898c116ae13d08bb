"""Descends on a graph of pair costs by moves that set nearly all nodes at once, with prices for a capacity."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.core.task import Capacity

from .elimination import Work, eliminate, work
from .joining import Joined, joined
from .network import IMPOSSIBLE, Network, Pairs, active, network

_ENTRIES = 20_000_000
_TOGETHER, _LARGEST = 1e9, (1e4, 1e6)
_SHUFFLE = 0.5
_ROUND, _WHOLE, _LEAST = 12, 0.5, 0.1
_STILL, _SHAKES = 3, (-4.0, -1.5)
"""One step in so many is not perturbed; the others by a share of the best cost, of which this is the logarithm."""
_RATE = 0.3
"""How fast prices follow."""
_TIMES = 20.0
"""A value pays the prices of all times at which it lives; if more times than these change much, each changes less."""


class Minimiser:
    """Searches an assignment of least cost within a capacity.

    Nodes that determine each other are one (`joined`). Each step sets all nodes but a few to the exact minimum given
    those few, which are drawn anew (`eliminate`). Costs contain prices for the capacity at each time: a price
    rises where the limit is broken, and falls where room is left (subgradients of the Lagrangian, Held and Karp 1971).
    Two steps of three see perturbed costs (perturb and MAP, Papandreou and Yuille 2011). A round of steps begins at the
    best candidate; half of the rounds leave out all values that cannot be part of a candidate that is cheaper by some
    share (`active`), which leads straight to such candidates where there are any.

    Args:
      pairs: the costs.
      capacity: what limits the candidates, if anything.
      config: `(d,)` a first candidate.
      rng: draws everything.
      largest: entries of a table; by default as many as a step can afford.

    Attributes:
      best: `(d,)` the best candidate so far.
      cost: its cost, inf if it is impossible or above the capacity.
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
        self._total = np.inf
        self._prices = np.zeros(0 if capacity is None else int(capacity.ends.max()) + 1)
        self.learn(pairs, config)

    def learn(self, pairs: Pairs, config: NDArray) -> None:
        """Continue with other costs, from a `(d,)` candidate; the prices stay."""
        self._pairs, self.cost = pairs, np.inf
        self.best = np.array(config, np.int64)
        self.cost = self._measure(self.best)
        self._steps = 0

    def step(self) -> NDArray[np.int64]:
        """Make one step and return its `(d,)` candidate, which may be impossible or exceed the capacity."""
        if self._steps % _ROUND == 0:
            self._begin_round()
        net, places = self._network, self._inside()
        nodes = net.nodes + self._priced()[net.places]
        self._steps += 1
        if self._steps % _STILL:
            scale = min(self.cost, self._total) * 10 ** self._rng.uniform(*_SHAKES)
            nodes = nodes + scale * self._rng.gumbel(size=len(nodes))
        small = self._joined
        config = places[small.leaders]
        eliminate(small.network, small.nodes(nodes), config, self._largest, _SHUFFLE, self._rng, self._work)
        self._state = net.values[net.firsts[:-1] + small.expand(config)]
        cost = self._measure(self._state)
        if cost < self.cost:
            self.best, self.cost = self._state.copy(), cost
        return self._state

    def _begin_round(self) -> None:
        """Begin again from the best, without the values that cannot be in a candidate that is cheaper by some share."""
        is_whole = self._steps == 0 or self._rng.random() < _WHOLE
        share = 1.0 if is_whole else float(np.exp(self._rng.uniform(np.log(_LEAST), 0)))
        self._state, self._total = self.best, total(self._pairs, self.best)
        self._kept = active(self._pairs, min(share * self._total, IMPOSSIBLE / 2))
        self._network: Network = network(self._pairs, self._kept)
        self._joined: Joined = joined(self._network)
        self._work: Work = work(self._joined.network, _ENTRIES)

    def _inside(self) -> NDArray[np.int64]:
        """Return where the values of the state are among the kept ones; another one where the value was left out."""
        net, d = self._network, len(self._state)
        rank = np.cumsum(self._kept) - 1
        own = self._pairs.firsts[:-1] + self._state
        places = rank[own] - net.firsts[:-1]
        return np.where(self._kept[own], places, np.minimum(np.maximum(places, 0), net.sizes - 1)).reshape(d)

    def _priced(self) -> NDArray[np.float64]:
        """Return what the capacity costs for each value of each node, at the prices of now."""
        if self._capacity is None:
            return np.zeros(len(self._pairs.nodes))
        sums = np.concatenate([[0.0], np.cumsum(self._prices)])
        begins, ends = self._capacity.begins, np.maximum(self._capacity.begins, self._capacity.ends)
        return np.repeat(sums[ends] - sums[begins], self._pairs.sizes) * self._pairs.usages

    def _measure(self, config: NDArray) -> float:
        """Return the cost, inf if it is impossible or above the capacity; let the prices follow."""
        cost = total(self._pairs, config)
        self._total = cost
        most = 0.0
        if self._capacity is not None:
            over = used(self._capacity, config) / self._capacity.limit - 1
            change = np.where((over > 0) | (self._prices > 0), np.clip(over, -1, 1), 0)
            step = _RATE * max(1.0, min(cost, self.cost)) / self._capacity.limit
            self._prices = np.maximum(0, self._prices + step * change / max(1.0, np.abs(change).sum() / _TIMES))
            most = float(over.max())
        return cost if cost < IMPOSSIBLE and most <= 0 else np.inf


def total(pairs: Pairs, config: NDArray) -> float:
    """Return the cost of a `(d,)` candidate; inf if it is impossible."""
    edges = pairs.starts + config[pairs.first] * pairs.sizes[pairs.second] + config[pairs.second]
    return float(pairs.nodes[pairs.firsts[:-1] + config].sum() + pairs.tables[edges].sum())


def used(capacity: Capacity, config: NDArray) -> NDArray[np.int64]:
    """Return what a `(d,)` candidate uses at each step, and one more."""
    change, lives = np.zeros(int(capacity.ends.max()) + 1, np.int64), capacity.begins < capacity.ends
    usages = capacity.usages[capacity.firsts[:-1] + config]
    np.add.at(change, capacity.begins[lives], usages[lives])
    np.add.at(change, capacity.ends[lives], -usages[lives])
    return np.cumsum(change)
