"""The graph of a sharding problem: costs of nodes and edges for each choice of strategies, and memory over time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

IMPOSSIBLE = 10**18
"""A cost of this and more stands for "impossible"."""

LARGEST = 2**63 - 1


@dataclass(frozen=True, repr=False)
class ShardingGraph:
    """n nodes with a strategy each, m edges, and p = n + m parts: first the nodes, then the edges.

    Attributes:
      name: of the program.
      sizes: `(n,)` the number of strategies of each node.
      edges: `(m, 2)` nodes.
      tables: all costs, int64; equal tables are kept once.
      starts: `(p,)` where the table of each part begins. The cost of node i is `tables[starts[i] + s[i]]`, that of edge
        e between a and b is `tables[starts[n + e] + s[a] * sizes[b] + s[b]]`.
      usages: `(sum of sizes,)` int64 bytes of each strategy of each node.
      begins, ends: `(n,)` the steps of `times` in which each node lives, without the last.
      times: the times at which a node begins or ends, ascending.
      limit: the most bytes that may live at once; None if there is no limit.
    """

    name: str
    sizes: NDArray[np.int64]
    edges: NDArray[np.int64]
    tables: NDArray[np.int64]
    starts: NDArray[np.int64]
    usages: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    times: NDArray[np.int64]
    limit: int | None

    def __post_init__(self) -> None:
        """Refuse what no candidate can keep, and what 64 bits cannot hold.

        Raises:
          ValueError: sums may overflow, or the limit is below what any candidate needs.
        """
        possible = np.where(self.tables < IMPOSSIBLE, self.tables, self.tables - IMPOSSIBLE)
        ends = np.append(np.unique(self.starts)[1:], len(self.tables))
        largest = np.maximum.reduceat(possible, np.unique(self.starts))
        if sum(largest[np.searchsorted(ends, self.starts, "right")].tolist()) > LARGEST:
            raise ValueError("its costs may add up to more than 2^63; give them in a larger unit")
        if sum(np.maximum.reduceat(self.usages, self.firsts[:-1]).tolist()) > LARGEST:
            raise ValueError("its usages may add up to more than 2^63; give them in a larger unit")
        needed = self.memory(np.minimum.reduceat(self.usages, self.firsts[:-1]))
        if self.limit is not None and len(needed) and needed.max() > self.limit:
            when = self.times[int(needed.argmax())]
            raise ValueError(
                f"no candidate keeps its limit: at time {when} the least usages add up to {needed.max():,}, and the"
                f" limit is {self.limit:,}; raise the limit"
            )

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """The `(n + 1,)` places in `usages` at which each node begins."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def memory(self, used: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes at each of `times`, given the `(n,)` bytes of the nodes."""
        change, lives = np.zeros(len(self.times), np.int64), self.begins < self.ends
        np.add.at(change, self.begins[lives], used[lives])
        np.add.at(change, self.ends[lives], -used[lives])
        return np.cumsum(change)

    def places(self, configs: NDArray) -> NDArray[np.int64]:
        """Return the `(k, p)` places in `tables` of the parts of `(k, n)` candidates."""
        chosen = configs.astype(np.int64)
        a, b = self.edges.T
        n, pairs = len(self.sizes), chosen[:, a] * self.sizes[b] + chosen[:, b]
        return np.concatenate([chosen + self.starts[:n], pairs + self.starts[n:]], axis=1)

    def features(self) -> tuple[NDArray[np.float32], tuple[str, ...]]:
        """Return `(n, 5)` numbers that describe each node, and their names."""
        smallest, largest = (f.reduceat(self.usages, self.firsts[:-1]) for f in (np.minimum, np.maximum))
        lives = self.times[self.ends] - self.times[self.begins]
        degrees = np.bincount(self.edges.ravel(), minlength=len(self.sizes))
        logs = (np.log2(1.0 + np.maximum(column, 0)) for column in (smallest, largest, lives))
        names = ("strategies", "log2 of least usage", "log2 of most usage", "log2 of lifetime", "edges")
        return np.column_stack([self.sizes, *logs, degrees]).astype(np.float32), names

    @cached_property
    def digest(self) -> str:
        """A hash of all that decides the cost of a candidate."""
        arrays = (self.sizes, self.edges, self.tables, self.starts, self.usages, self.begins, self.ends, self.times)
        state = hashlib.sha256(str(self.limit).encode())
        for array in arrays:
            state.update(str(array.shape).encode() + array.astype("<i8").tobytes())
        return state.hexdigest()[:16]


def graph_of(
    name: str,
    node_costs: Sequence[NDArray[np.int64]],
    edges: NDArray[np.int64],
    edge_costs: Sequence[NDArray[np.int64]],
    usages: Sequence[NDArray[np.int64]],
    intervals: NDArray[np.int64],
    limit: int | None,
) -> ShardingGraph:
    """Return the graph of lists of tables.

    Args:
      node_costs: for each node the cost of each strategy.
      edges: `(m, 2)` nodes.
      edge_costs: for each edge `(a, b)` the costs of all pairs, row by row: those of a's first strategy first.
      usages: for each node the bytes of each strategy.
      intervals: `(n, 2)` the first time at which a node lives and the first at which it no longer does.
      limit: the most bytes that may live at once.

    Raises:
      ValueError: sums may overflow, or the limit is below what any candidate needs.
    """
    sizes = np.array([len(costs) for costs in node_costs])
    times, steps = np.unique(intervals, return_inverse=True)
    steps = steps.reshape(-1, 2)
    tables, starts = _distinct([*node_costs, *edge_costs], _shapes(sizes, edges))
    return ShardingGraph(
        name, sizes, edges, tables, starts, np.concatenate(usages), steps[:, 0].copy(), steps[:, 1].copy(), times, limit
    )


def _shapes(sizes: NDArray[np.int64], edges: NDArray[np.int64]) -> list[bytes]:
    """Return a text for each part that differs where the shapes of tables do."""
    return [bytes(row) for row in (*sizes[:, None], *sizes[edges])]


def _distinct(
    tables: Sequence[NDArray[np.int64]], shapes: Sequence[bytes]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all different tables one after another, and where the table of each part begins."""
    known: dict[bytes, int] = {}
    kept, starts, end = [], np.empty(len(tables), np.int64), 0
    for i, (table, shape) in enumerate(zip(tables, shapes, strict=True)):
        key = hashlib.blake2b(table.tobytes() + shape, digest_size=16).digest()
        if key not in known:
            known[key] = end
            kept.append(table)
            end += len(table)
        starts[i] = known[key]
    return np.concatenate(kept), starts
