"""A graph of pair costs reduced to what is left: values of better candidates, and nodes that decide others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for
from bbo_suite.core.task import Capacity
from bbo_suite.solvers import Minimum, PairCosts, minimise

from .network import IMPOSSIBLE, Network, Pairs, around, edges_between, network, other_end, strides

compiled = compiled_for(__file__)


class Remaining:
    """The active values as a network in which nodes that determine each other are one.

    Args:
      pairs: all costs of d nodes.
      active: which values are left; at least one of each node.

    Attributes:
      small: the network of the k nodes that are left.
    """

    def __init__(self, pairs: Pairs, active: NDArray[np.bool_]) -> None:
        self._pairs, self._active = pairs, active
        self._network = network(pairs, active)
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
        places = np.cumsum(self._active)[own] - 1 - net.firsts[:-1]
        inside = np.where(self._active[own], places, np.minimum(np.maximum(places, 0), net.sizes - 1))
        return inside[self._joined.leaders]

    def solve(self, capacity: Capacity | None, most_nodes: int) -> Minimum:
        """Minimise exactly with a search tree of at most so many nodes; return a `(d,)` candidate."""
        net, small = self._network, self.small
        nodes, tables = (np.where(c < IMPOSSIBLE, c, np.inf) for c in (self._joined.nodes(net.nodes), small.tables))
        costs = PairCosts(small.sizes, nodes, small.first, small.second, small.starts, tables)
        if capacity is not None:
            active = capacity.usages[net.places]
            capacity = Capacity(net.firsts, active, capacity.begins, capacity.ends, capacity.limit)
        found = minimise(costs, capacity, self._joined.targets, most_nodes)
        return found if found.config is None else Minimum(self.expand(found.config), found.bound)


class Joined(NamedTuple):
    """A network of d nodes in which k are left.

    Attributes:
      network: of the k nodes; `nodes` has the costs of edges inside a joined node only, and `values`, `places` nothing.
      owners: `(d,)` the node that decides each node.
      leaders: `(k,)` the node that each joined one is named after; it has the same values in the same order.
      targets: where the cost of each value of the d nodes belongs in `network.nodes`.
      firsts, values: node i has value `values[firsts[i] + a]` if its owner has value a.
    """

    network: Network
    owners: NDArray[np.int64]
    leaders: NDArray[np.int64]
    targets: NDArray[np.int64]
    firsts: NDArray[np.int64]
    values: NDArray[np.int64]

    def nodes(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the costs of the values of the k nodes, given those of the d nodes."""
        inside = self.network.nodes
        return inside + np.bincount(self.targets, nodes, len(inside))

    def expand(self, config: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the `(d,)` values of all nodes."""
        return self.values[self.firsts[:-1] + config[self.owners]]


def joined(net: Network) -> Joined:
    """Join nodes where each value of one is possible with exactly one value of the other."""
    d = len(net.sizes)
    roots, values = np.full(d, -1), np.empty(len(net.nodes), np.int64)
    _follow(net, roots, values)
    leaders, owners = np.unique(roots, return_inverse=True)
    owners, sizes = owners.reshape(-1).astype(np.int64), net.sizes[leaders]
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    targets = np.empty(len(values), np.int64)
    own = np.repeat(np.arange(d), net.sizes)
    targets[net.firsts[own] + values] = firsts[owners[own]] + np.arange(len(values)) - net.firsts[own]
    first, second = owners[net.first], owners[net.second]
    apart = first != second
    joins = edges_between(sizes, first[apart], second[apart])
    edges = np.full(len(first), -1)
    edges[apart] = joins.of
    nodes, tables = np.zeros(int(firsts[-1])), np.zeros(joins.length)
    _add_up(net, owners, values, edges, firsts, joins.starts, nodes, tables)
    few = np.empty(0, np.int64)
    rows = around(len(sizes), joins.first, joins.second)
    tables = np.minimum(tables, IMPOSSIBLE)
    network = Network(few, few, sizes, firsts, nodes, joins.first, joins.second, joins.starts, tables, *rows)
    return Joined(network, owners, leaders, targets, net.firsts, values)


@compiled()
def _follow(net: Network, roots: NDArray, values: NDArray) -> None:
    """Write for each node the one that decides it, and its value for each value of that one."""
    d = len(roots)
    stack = np.empty(d, np.int64)
    for root in range(d):
        if roots[root] >= 0:
            continue
        roots[root], stack[0], count = root, root, 1
        for a in range(net.sizes[root]):
            values[net.firsts[root] + a] = a
        while count:
            count -= 1
            i = stack[count]
            for k in range(net.rows[i], net.rows[i + 1]):
                e = net.edges[k]
                j = other_end(i, e, net)
                if roots[j] >= 0 or net.sizes[i] != net.sizes[j]:
                    continue
                if _match(net, i, e, values[net.firsts[i] : net.firsts[i + 1]], values[net.firsts[j] :]):
                    roots[j], stack[count] = root, j
                    count += 1


@compiled()
def _match(net: Network, i: int, e: int, mine: NDArray, other: NDArray) -> bool:
    """Write the only possible value of the other node for each of `mine`; return whether they all differ."""
    width = net.sizes[i]
    step, across = strides(i, e, net)
    taken = np.zeros(width, np.bool_)
    for a in range(width):
        count = 0
        for b in range(width):
            if net.tables[net.starts[e] + mine[a] * step + b * across] < IMPOSSIBLE:
                other[a], count = b, count + 1
        if count != 1 or taken[other[a]]:
            return False
        taken[other[a]] = True
    return True


@compiled()
def _add_up(
    net: Network,
    owners: NDArray,
    values: NDArray,
    edges: NDArray,
    firsts: NDArray,
    starts: NDArray,
    nodes: NDArray,
    tables: NDArray,
) -> None:
    """Add the costs of edges to those of the joined nodes and their edges."""
    for e in range(len(edges)):
        i, j = net.first[e], net.second[e]
        same = owners[i] == owners[j]
        for a in range(net.sizes[i]):
            row = net.starts[e] + values[net.firsts[i] + a] * net.sizes[j]
            for b in range(net.sizes[j]):
                cost = net.tables[row + values[net.firsts[j] + b]]
                if same:
                    if a == b:
                        nodes[firsts[owners[i]] + a] += cost
                elif owners[i] < owners[j]:
                    tables[starts[edges[e]] + a * net.sizes[j] + b] += cost
                else:
                    tables[starts[edges[e]] + b * net.sizes[i] + a] += cost
