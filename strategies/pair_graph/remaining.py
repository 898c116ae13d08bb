"""What is left of a graph of pair costs: the values that may be in a better candidate, and the nodes that decide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.core.task import Capacity
from bbo_suite.solvers import Minimum, PairCosts, minimise

from .joining import joined
from .network import IMPOSSIBLE, Network, Pairs, network


class Remaining:
    """The kept values as a network in which nodes that determine each other are one.

    Args:
      pairs: all costs of d nodes.
      kept: which values are left; at least one of each node.

    Attributes:
      small: the network of the k nodes that are left.
    """

    def __init__(self, pairs: Pairs, kept: NDArray[np.bool_]) -> None:
        self._pairs, self._kept = pairs, kept
        self._network = network(pairs, kept)
        self._joined = joined(self._network)
        self.small: Network = self._joined.network

    def nodes(self, more: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the costs of the values of the k nodes, if each value of the d nodes costs so much more."""
        return self._joined.nodes(self._network.nodes + more[self._network.places])

    def change(self, more: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how much the costs of the values of the k nodes change, if those of the d nodes do so."""
        return np.bincount(self._joined.targets, more[self._network.places], len(self.small.nodes)).astype(np.float64)

    def places(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the values of the d nodes that the chosen values of the k nodes stand for."""
        return self._network.places[chosen[self._joined.targets]]

    def expand(self, config: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the `(d,)` candidate of a `(k,)` one."""
        return self._network.values[self._network.firsts[:-1] + self._joined.expand(config)]

    def project(self, config: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the `(k,)` candidate of a `(d,)` one; where its value was left out, one near it takes its place."""
        net = self._network
        own = self._pairs.firsts[:-1] + config
        places = np.cumsum(self._kept)[own] - 1 - net.firsts[:-1]
        inside = np.where(self._kept[own], places, np.minimum(np.maximum(places, 0), net.sizes - 1))
        return inside[self._joined.leaders]

    def solve(self, capacity: Capacity | None, most_nodes: int) -> Minimum:
        """Minimise exactly with a search tree of at most so many nodes; return a `(d,)` candidate."""
        net, small = self._network, self.small
        nodes, tables = (np.where(c < IMPOSSIBLE, c, np.inf) for c in (self._joined.nodes(net.nodes), small.tables))
        costs = PairCosts(small.sizes, nodes, small.first, small.second, small.starts, tables)
        if capacity is not None:
            kept = capacity.usages[net.places]
            capacity = Capacity(net.firsts, kept, capacity.begins, capacity.ends, capacity.limit)
        found = minimise(costs, capacity, self._joined.targets, most_nodes)
        return found if found.config is None else Minimum(self.expand(found.config), found.bound)
