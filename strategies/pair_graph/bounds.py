"""A graph of pair costs reduced to what is left, and lower bounds on what a candidate costs there.

Values of better candidates are left, and nodes that decide others. The bounds come from messages between nodes and
edges, and from multipliers for a capacity.
"""

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


_PATIENCE, _WAIT, _GAIN = 200, 30, 1e-3
"""Sweeps without gain that end an ascent, and that halve its steps; what is a gain, of the gap."""
_SETTLING, _STRIDE = 20, 0.1
"""Sweeps before multipliers move; how far they move at first, of the gap."""


class Ascent:
    """A lower bound (`Relaxation`), with multipliers that move along subgradients (Held et al. 1974).

    Args:
      left: the graph.
      multipliers: for the capacity; they are moved.
      most: entries that cost more may count as equal.

    Attributes:
      bound: the highest bound so far: no candidate that is left costs less.
      rises: false when it has stalled, or nothing better is left.
    """

    def __init__(self, left: Remaining, multipliers: Multipliers, most: float) -> None:
        self._left, self._multipliers = left, multipliers
        multipliers.forget()
        nodes = left.nodes(multipliers.of_values())
        self._relaxation = Relaxation(left.small, nodes, 2 * (most + multipliers.of_limit()))
        self.bound, self.rises = self._relaxation.bound - multipliers.of_limit(), True
        self._turns, self._still, self._stride = 0, 0, _STRIDE

    def sweep(self) -> NDArray[np.int64]:
        """Sweep once and return its `(d,)` candidate."""
        return self._left.expand(self._relaxation.sweep())

    def follow(self, config: NDArray[np.int64], most: float) -> NDArray[np.int64]:
        """Move the multipliers after a sweep.

        Args:
          config: its `(d,)` candidate.
          most: only candidates that cost less are of interest.

        Returns:
          The values that are in no such candidate.
        """
        paid = self._multipliers.of_limit()
        bound, few = self._relaxation.bound - paid, self._left.places(self._relaxation.least - paid >= most)
        self._turns += 1
        self._still = 0 if bound > self.bound + _GAIN * (most - self.bound) else self._still + 1
        self.bound = max(self.bound, bound)
        self.rises = self._still < _PATIENCE and self.bound < most
        if self._still and self._still % _WAIT == 0:
            self._stride /= 2
        if self.rises and self._turns > _SETTLING:
            before = self._multipliers.of_values()
            self._multipliers.ascend(config, self._stride * (most - bound))
            self._relaxation.add(self._left.change(self._multipliers.of_values() - before))
        return few


class Relaxation:
    """A network in which costs are moved between nodes and edges until they show how little a candidate can cost.

    Each sweep visits all nodes, in turns forwards and backwards: a node takes the least costs of its edges, gives
    their minimum to the bound, and passes an equal share of the rest to each edge that comes later (sequential
    tree-reweighted message passing, Kolmogorov 2006). No candidate changes its cost by that. On the way each node takes
    the value that is best next to those taken before.

    Args:
      network: the costs; those of nodes in `nodes`, with what the capacity costs.
      most: entries that cost more may count as equal.

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
            j = other_end(i, e, network)
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
            j = other_end(i, e, network)
            if (j < i) != forward:
                _push(i, e, network, nodes, tables, share)
        for a in range(width):
            nodes[first + a] *= 1 - after * share
    return bound


@compiled(runtime=False)
def _pull(i: int, e: int, network: Network, nodes: NDArray, tables: NDArray, choice: NDArray, taken: int) -> None:
    """Move the least cost of each value of a node from an edge to the node."""
    width, other = network.sizes[i], network.sizes[other_end(i, e, network)]
    step, across = strides(i, e, network)
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
    width, other = network.sizes[i], network.sizes[other_end(i, e, network)]
    step, across = strides(i, e, network)
    for a in range(width):
        row = network.starts[e] + a * step
        for b in range(other):
            tables[row + b * across] += share * nodes[network.firsts[i] + a]


_RATE = 0.3
"""How fast multipliers follow a candidate."""
_TIMES = 20.0
"""A value pays the multipliers of all times at which it lives; if many more times change, each changes less."""
_MEMORY = 0.8
"""How much of past subgradients counts."""


class Multipliers:
    """What the use of a capacity costs at each time; nothing if there is no capacity.

    Args:
      capacity: the limit.
      sizes: `(d,)` the number of values of each node.
    """

    def __init__(self, capacity: Capacity | None, sizes: NDArray[np.int64]) -> None:
        self._capacity, self._sizes = capacity, sizes
        self._values = np.zeros(0 if capacity is None else int(capacity.ends.max()) + 1)
        self._slope = np.zeros(len(self._values))

    def of_values(self) -> NDArray[np.float64]:
        """Return what each value of each node pays."""
        capacity = self._capacity
        if capacity is None:
            return np.zeros(int(self._sizes.sum()))
        sums = np.concatenate([[0.0], np.cumsum(self._values)])
        lives = sums[np.maximum(capacity.begins, capacity.ends)] - sums[capacity.begins]
        return np.repeat(lives, self._sizes) * capacity.usages

    def of_limit(self) -> float:
        """Return what a candidate pays that uses the whole capacity."""
        return 0.0 if self._capacity is None else float(self._values.sum()) * self._capacity.limit

    def fits(self, config: NDArray[np.int64]) -> bool:
        """Return whether a `(d,)` candidate stays within the capacity."""
        return self._capacity is None or used(self._capacity, config).max() <= self._capacity.limit

    def forget(self) -> None:
        """Begin a new ascent: past subgradients no longer count."""
        self._slope[:] = 0

    def ascend(self, config: NDArray[np.int64], gap: float) -> None:
        """Move the multipliers along the subgradient of a candidate that is least at the present multipliers.

        Args:
          config: the `(d,)` candidate.
          gap: how much the bound may still rise, times the length of the step.
        """
        if self._capacity is not None:
            self._slope = _MEMORY * self._slope + (1 - _MEMORY) * self._over(config)
            slope = np.where((self._values > 0) | (self._slope > 0), self._slope, 0)
            length = max(1e-12, float(slope @ slope))
            self._values = np.maximum(0, self._values + gap / length / self._capacity.limit * slope)

    def follow(self, config: NDArray[np.int64], cost: float) -> None:
        """Let the multipliers follow a candidate, in proportion to a cost."""
        if self._capacity is not None:
            over = self._over(config)
            change = np.where((over > 0) | (self._values > 0), np.clip(over, -1, 1), 0)
            step = _RATE * max(1.0, cost) / self._capacity.limit
            self._values = np.maximum(0, self._values + step * change / max(1.0, np.abs(change).sum() / _TIMES))

    def _over(self, config: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return by which share of the limit a candidate is above it at each time."""
        assert self._capacity is not None
        return used(self._capacity, config) / self._capacity.limit - 1


def used(capacity: Capacity, config: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what a `(d,)` candidate uses at each time, and one more."""
    return capacity.over_time(capacity.usages[capacity.firsts[:-1] + config])
