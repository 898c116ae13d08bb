"""Joins nodes that determine each other: one of them decides all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .network import IMPOSSIBLE, Network, around

compiled = compiled_for(__file__)


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
    ends = np.sort(np.stack([owners[net.first], owners[net.second]], axis=1), axis=1)
    pairs, edge_of = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0, return_inverse=True)
    edges = np.full(len(ends), -1)
    edges[ends[:, 0] != ends[:, 1]] = edge_of.reshape(-1)
    areas = sizes[pairs].prod(axis=1)
    starts = np.cumsum(areas) - areas
    nodes, tables = np.zeros(int(firsts[-1])), np.zeros(int(areas.sum()))
    _add_up(net, owners, values, edges, firsts, starts, nodes, tables)
    first, second = (np.ascontiguousarray(column) for column in pairs.T)
    few = np.empty(0, np.int64)
    rows = around(len(sizes), first, second)
    tables = np.minimum(tables, IMPOSSIBLE)
    network = Network(few, few, sizes, firsts, nodes, first, second, starts, tables, *rows)
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
                j = net.second[e] if net.first[e] == i else net.first[e]
                if roots[j] >= 0 or net.sizes[i] != net.sizes[j]:
                    continue
                if _match(net, i, e, values[net.firsts[i] : net.firsts[i + 1]], values[net.firsts[j] :]):
                    roots[j], stack[count] = root, j
                    count += 1


@compiled()
def _match(net: Network, i: int, e: int, mine: NDArray, other: NDArray) -> bool:
    """Write the only possible value of the other node for each of `mine`; return whether they all differ."""
    width = net.sizes[i]
    step, across = (width, 1) if net.first[e] == i else (1, width)
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
