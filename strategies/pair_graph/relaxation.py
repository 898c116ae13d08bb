"""Lower bounds on what a candidate costs, and candidates that are close to them, by passing messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .network import Network

compiled = compiled_for(__file__)


class Relaxation:
    """A network in which costs are moved between nodes and edges until they show how little a candidate can cost.

    Each sweep visits all nodes, in turns forwards and backwards: a node takes the least costs of its edges, gives
    their minimum to the bound, and passes an equal share of the rest to each edge that comes later (sequential
    tree-reweighted message passing, Kolmogorov 2006). No candidate changes its cost by that. On the way each node takes
    the value that is best next to those taken before.

    Args:
      network: the costs; those of nodes in `nodes`, with prices.
      most: entries that cost more need not be told apart.

    Attributes:
      bound: no candidate costs less.
      least: no candidate with this value costs less, for each value.
      nodes: the costs of values that are left.
    """

    def __init__(self, network: Network, nodes: NDArray[np.float64], most: float) -> None:
        self._network, self._turn = network, 0
        tables = network.tables
        lows = np.minimum.reduceat(tables, network.starts) if len(tables) else np.zeros(0)
        areas = network.sizes[network.first] * network.sizes[network.second]
        least = np.minimum.reduceat(nodes, network.firsts[:-1])
        self.bound = float(lows.sum() + least.sum())
        self.least = np.full(len(nodes), -np.inf)
        self._tables = np.minimum(tables - np.repeat(lows, areas), most - self.bound)
        self.nodes = np.minimum(nodes - np.repeat(least, network.sizes), most - self.bound)

    def add(self, nodes: NDArray[np.float64]) -> None:
        """Add to the costs of values."""
        lows = np.minimum.reduceat(self.nodes + nodes, self._network.firsts[:-1])
        self.nodes += nodes - np.repeat(lows, self._network.sizes)
        self.bound += float(lows.sum())

    def sweep(self) -> NDArray[np.int64]:
        """Raise the bound and return a `(k,)` candidate."""
        config = np.zeros(len(self._network.sizes), np.int64)
        self.bound = _sweep(
            self._network, self._turn % 2 == 0, self.bound, self.nodes, self._tables, self.least, config
        )
        self._turn += 1
        return config


@compiled()
def _sweep(
    network: Network, forward: bool, bound: float, nodes: NDArray, tables: NDArray, least: NDArray, config: NDArray
) -> float:
    d = len(network.sizes)
    choice = np.empty(network.sizes.max())
    for turn in range(d):
        i = turn if forward else d - 1 - turn
        first, width, before, after = network.firsts[i], network.sizes[i], 0, 0
        choice[:width] = nodes[first : first + width]
        for k in range(network.rows[i], network.rows[i + 1]):
            e = network.edges[k]
            j = network.second[e] if network.first[e] == i else network.first[e]
            is_before = (j < i) == forward
            before, after = before + is_before, after + (not is_before)
            _pull(i, e, network, nodes, tables, choice, config[j] if is_before else -1)
        best, low = 0, np.inf
        for a in range(width):
            low = min(low, nodes[first + a])
            if choice[a] < choice[best]:
                best = a
        config[i] = best
        bound += low
        share = 1 / max(1, before, after)
        for a in range(width):
            nodes[first + a] -= low
            least[first + a] = bound + nodes[first + a]
        for k in range(network.rows[i], network.rows[i + 1]):
            e = network.edges[k]
            j = network.second[e] if network.first[e] == i else network.first[e]
            if (j < i) != forward:
                _push(i, e, network, nodes, tables, share)
        for a in range(width):
            nodes[first + a] *= 1 - after * share
    return bound


@compiled(runtime=False)
def _pull(i: int, e: int, network: Network, nodes: NDArray, tables: NDArray, choice: NDArray, taken: int) -> None:
    """Move the least cost of each value of a node from an edge to the node."""
    is_first = network.first[e] == i
    j = network.second[e] if is_first else network.first[e]
    width, other = network.sizes[i], network.sizes[j]
    step, across = (other, 1) if is_first else (1, width)
    for a in range(width):
        row = network.starts[e] + a * step
        low = np.inf
        for b in range(other):
            low = min(low, tables[row + b * across])
        choice[a] += tables[row + taken * across] if taken >= 0 else low
        for b in range(other):
            tables[row + b * across] -= low
        nodes[network.firsts[i] + a] += low


@compiled(runtime=False)
def _push(i: int, e: int, network: Network, nodes: NDArray, tables: NDArray, share: float) -> None:
    """Add a share of the cost of each value of a node to an edge."""
    is_first = network.first[e] == i
    j = network.second[e] if is_first else network.first[e]
    width, other = network.sizes[i], network.sizes[j]
    step, across = (other, 1) if is_first else (1, width)
    for a in range(width):
        row = network.starts[e] + a * step
        for b in range(other):
            tables[row + b * across] += share * nodes[network.firsts[i] + a]
