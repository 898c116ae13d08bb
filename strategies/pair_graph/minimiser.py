"""Descends on a graph of pair costs by moves that set nearly all nodes at once, with prices for a capacity."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.core.task import Capacity

from .elimination import Work, eliminate, work
from .joining import Joined, joined
from .network import IMPOSSIBLE, Network, Pairs, active, network
from .relaxation import Relaxation

_ENTRIES = 20_000_000
_TOGETHER, _LARGEST = 1e9, (1e4, 1e6)
_SHUFFLE = 0.5
_ROUND = 12
_ENTRIES_SWEPT = 3e6
"""Entries that the sweeps of one step visit."""
_SWEEPS, _PATIENCE, _WAIT, _GAIN = (1, 100), 200, 30, 1e-3
"""Sweeps of a step; sweeps without gain that end an ascent, and that halve its steps; what is a gain, of the gap."""
_SETTLING, _STRIDE, _MEMORY = 20, 0.1, 0.8
"""Sweeps before prices move; how far they move at first, of the gap; how much of past subgradients counts."""
_STILL, _SHAKES = 3, (-4.0, -1.5)
"""One step in so many is not perturbed; the others by a share of the best cost, of which this is the logarithm."""
_EXACT = 1e-9
"""Costs that differ by less, relatively, are the same."""
_RATE = 0.3
"""How fast prices follow."""
_TIMES = 20.0
"""A value pays the prices of all times at which it lives; if more times than these change much, each changes less."""


class Minimiser:
    """Searches an assignment of least cost within a capacity.

    Nodes that determine each other are one (`joined`). Costs contain prices for the capacity at each time. Two kinds
    of rounds take turns. An *ascent* raises a lower bound (`Relaxation`) and moves the prices along subgradients of
    the Lagrangian (Held, Wolfe and Crowder 1974) until it stalls; each sweep leaves a candidate. What cannot be in a
    candidate that is cheaper than the best is left out from then on. The other round sets all nodes but a few to the
    exact minimum given those few, which are drawn anew (`eliminate`); two of three steps see perturbed costs (perturb
    and MAP, Papandreou and Yuille 2011).

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
        self._total = np.inf
        self._prices = np.zeros(0 if capacity is None else int(capacity.ends.max()) + 1)
        self.learn(pairs, config)

    def learn(self, pairs: Pairs, config: NDArray) -> None:
        """Continue with other costs, from a `(d,)` candidate; the prices stay."""
        self._pairs, self.cost, self.is_proven = pairs, np.inf, False
        self.best = np.array(config, np.int64)
        self._may_be = np.ones(len(pairs.nodes), bool)
        self._most = _ceiling(pairs)
        self._keep(self.best)
        self._begin_ascent()

    def step(self) -> NDArray[np.int64]:
        """Make one step and return its `(d,)` candidate, which may be impossible or exceed the capacity."""
        if self.is_proven:
            return self.best
        if self._steps == _ROUND:
            self._begin_ascent()
        return self.best if self.is_proven else self._ascend() if self._rises else self._eliminate()

    def _begin_ascent(self) -> None:
        """Leave out what cannot be in a better candidate, and begin at the best."""
        self._state, self._total = self.best, total(self._pairs, self.best)
        self._kept = self._may_be & active(self._pairs, min(self.cost, IMPOSSIBLE / 2))
        self.is_proven = not np.logical_or.reduceat(self._kept, self._pairs.firsts[:-1]).all()
        if self.is_proven:
            return
        self._network: Network = network(self._pairs, self._kept)
        self._joined: Joined = joined(self._network)
        self._work: Work = work(self._joined.network, _ENTRIES)
        nodes = self._joined.nodes(self._network.nodes + self._priced()[self._network.places])
        self._relaxation = Relaxation(self._joined.network, nodes, 2 * (min(self.cost, self._most) + self._paid()))
        self._bound, self._turns, self._still, self._stride = -np.inf, 0, 0, _STRIDE
        self._slope, self._rises, self._steps = np.zeros(len(self._prices)), True, 0

    def _ascend(self) -> NDArray[np.int64]:
        """Sweep several times; return the cheapest candidate."""
        net, small = self._network, self._joined
        entries = len(small.network.tables) + len(self._pairs.nodes)
        cheapest, least = self._state, np.inf
        for _ in range(int(np.clip(_ENTRIES_SWEPT / entries, *_SWEEPS))):
            state = net.values[net.firsts[:-1] + small.expand(self._relaxation.sweep())]
            cost = self._keep(state)
            if cost <= least:
                cheapest, least = state, cost
            if not self._follow(state):
                self._rises = False
                break
        self._state = cheapest
        return cheapest

    def _follow(self, state: NDArray) -> bool:
        """Leave out what costs too much, move the prices, and return whether the bound still rises."""
        paid = self._paid()
        bound, most = self._relaxation.bound - paid, min(self.cost, self._most)
        few = self._relaxation.least - paid >= most - _EXACT * abs(most)
        self._may_be[self._network.places[few[self._joined.targets]]] = False
        self._turns += 1
        self._still = 0 if bound > self._bound + _GAIN * (most - self._bound) else self._still + 1
        self._bound = max(self._bound, bound)
        if self._still and self._still % _WAIT == 0:
            self._stride /= 2
        if self._capacity is not None and self._turns > _SETTLING:
            over = used(self._capacity, state) / self._capacity.limit - 1
            self._slope = _MEMORY * self._slope + (1 - _MEMORY) * over
            slope = np.where((self._prices > 0) | (self._slope > 0), self._slope, 0)
            length = max(1e-12, float(slope @ slope))
            before = self._priced()
            step = self._stride * max(0.0, most - bound) / length / self._capacity.limit
            self._prices = np.maximum(0, self._prices + step * slope)
            change = (self._priced() - before)[self._network.places]
            self._relaxation.add(
                np.bincount(self._joined.targets, change, len(self._relaxation.nodes)).astype(np.float64)
            )
        return self._still < _PATIENCE

    def _eliminate(self) -> NDArray[np.int64]:
        """Set all nodes but a few to the exact minimum."""
        net, places, small = self._network, self._inside(), self._joined
        nodes = net.nodes + self._priced()[net.places]
        self._steps += 1
        if self._steps % _STILL:
            scale = min(self.cost, self._total) * 10 ** self._rng.uniform(*_SHAKES)
            nodes = nodes + scale * self._rng.gumbel(size=len(nodes))
        config = places[small.leaders]
        eliminate(small.network, small.nodes(nodes), config, self._largest, _SHUFFLE, self._rng, self._work)
        self._state = net.values[net.firsts[:-1] + small.expand(config)]
        self._measure(self._state)
        self._keep(self._state)
        return self._state

    def _keep(self, config: NDArray) -> float:
        """Return the cost of a candidate, inf if it is impossible or above the capacity; keep it if it is the best."""
        cost = total(self._pairs, config)
        fits = self._capacity is None or used(self._capacity, config).max() <= self._capacity.limit
        cost = cost if cost < IMPOSSIBLE and fits else np.inf
        if cost < self.cost:
            self.best, self.cost = config.copy(), cost
        return cost

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

    def _paid(self) -> float:
        """Return what the prices add to the cost of a candidate that uses the whole capacity."""
        return 0.0 if self._capacity is None else float(self._prices.sum()) * self._capacity.limit

    def _measure(self, config: NDArray) -> None:
        """Let the prices follow a candidate of an elimination."""
        self._total = cost = total(self._pairs, config)
        if self._capacity is not None:
            over = used(self._capacity, config) / self._capacity.limit - 1
            change = np.where((over > 0) | (self._prices > 0), np.clip(over, -1, 1), 0)
            step = _RATE * max(1.0, min(cost, self.cost)) / self._capacity.limit
            self._prices = np.maximum(0, self._prices + step * change / max(1.0, np.abs(change).sum() / _TIMES))


def _ceiling(pairs: Pairs) -> float:
    """Return what no possible candidate exceeds."""
    groups = (pairs.tables, pairs.starts), (pairs.nodes, pairs.firsts[:-1])
    return 1.0 + sum(
        float(np.maximum.reduceat(np.where(costs < IMPOSSIBLE, costs, 0.0), starts).sum())
        for costs, starts in groups
        if len(costs)
    )


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
