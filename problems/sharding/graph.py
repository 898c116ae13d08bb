"""The graph of a sharding problem: costs of nodes and edges for each choice of strategies, and memory over time.

It is also read from the JSON of the ASPLOS 2025 / EuroSys 2025 contest on intra-operator parallelism, plain or gzipped
(https://github.com/google/iopddl). Nothing in a file is trusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite.files.reading import parse_json, read_bounded

from ..reading import explained, unique_keys

IMPOSSIBLE = 10**18
"""A cost of this and more stands for "impossible"."""

LARGEST = 2**63 - 1
"""The largest number in a file."""


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
          ValueError: sums may overflow, a node or an edge has impossible costs only, or the limit is below what any
            candidate needs.
        """
        firsts, table = np.unique(self.starts, return_inverse=True)
        possible = np.where(self.tables < IMPOSSIBLE, self.tables, self.tables - IMPOSSIBLE)
        if sum(np.maximum.reduceat(possible, firsts)[table].tolist()) > LARGEST:
            raise ValueError("its costs may add up to more than 2^63; give them in a larger unit")
        if sum(np.maximum.reduceat(self.usages, self.firsts[:-1]).tolist()) > LARGEST:
            raise ValueError("its usages may add up to more than 2^63; give them in a larger unit")
        for part in np.flatnonzero(np.minimum.reduceat(self.tables, firsts)[table] >= IMPOSSIBLE)[:1].tolist():
            name = f"nodes.costs[{part}]" if part < len(self.sizes) else f"edges.costs[{part - len(self.sizes)}]"
            raise ValueError(f"no candidate without an impossible cost: all of {name} are 10^18 or more; lower one")
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


_MOST_BYTES = 1 << 30
"""Largest text after unpacking; some 100 million pair costs."""
_FORMAT = "a problem of the ASPLOS 2025 contest on intra-operator parallelism"


def read(path: Path) -> ShardingGraph:
    """Return the graph in a file.

    Raises:
      UserError: it cannot be read, is no such file, or cannot be solved; one sentence says what and where.
    """
    with explained(path, _FORMAT):
        return _graph(parse_json(read_bounded(path, _MOST_BYTES), object_pairs_hook=unique_keys))


def _graph(document: Any) -> ShardingGraph:  # noqa: ANN401 - JSON
    if not isinstance(document, dict) or "problem" not in document:
        raise ValueError(f"its JSON has no object 'problem'; it must be {_FORMAT}")
    _object(document, "the file", ("problem",))
    problem = _object(document["problem"], "problem", ("nodes", "edges"), ("name", "usage_limit"))
    nodes = _object(problem["nodes"], "nodes", ("intervals", "costs", "usages"))
    edges = _object(problem["edges"], "edges", ("nodes", "costs"))
    costs = _tables(nodes["costs"], "nodes.costs")
    if not costs:
        raise ValueError("it has no nodes")
    sizes = np.array([len(table) for table in costs])
    usages = _tables(nodes["usages"], "nodes.usages", sizes)
    intervals = _pairs(nodes["intervals"], "nodes.intervals", len(sizes))
    for i in np.flatnonzero(intervals[:, 0] > intervals[:, 1])[:1].tolist():
        raise ValueError(f"nodes.intervals[{i}] is {intervals[i].tolist()}, which ends before it begins")
    pairs = _pairs(edges["nodes"], "edges.nodes")
    wrong = np.flatnonzero((pairs >= len(sizes)).any(axis=1) | (pairs[:, 0] == pairs[:, 1]))
    if len(wrong):
        raise ValueError(
            f"edges.nodes[{wrong[0]}] is {pairs[wrong[0]].tolist()}, not two different nodes of {len(sizes)}"
        )
    edge_costs = _tables(edges["costs"], "edges.costs", sizes[pairs].prod(axis=1))
    limit = problem.get("usage_limit")
    if limit is not None:
        _integers([limit], "usage_limit")
    return graph_of(str(problem.get("name", "")), costs, pairs, edge_costs, usages, intervals, limit)


def _object(value: Any, name: str, needed: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(value, dict):
        raise ValueError(f"{name} is {_kind(value)}, not an object")
    for key in needed:
        if key not in value:
            raise ValueError(f"{name} has no key {key!r}; it must be {_FORMAT}")
    for key in value:
        if key not in needed and key not in optional:
            known = ", ".join((*needed, *optional))
            raise ValueError(f"{name} has the unknown key {key[:60]!r}; known are {known}")
    return value


def _lists(value: Any, name: str) -> list[list[Any]]:  # noqa: ANN401 - JSON
    if not isinstance(value, list):
        raise ValueError(f"{name} is {_kind(value)}, not a list")
    for i, item in enumerate(value):
        if not isinstance(item, list):
            raise ValueError(f"{name}[{i}] is {_kind(item)}, not a list")
    return value


def _tables(value: Any, name: str, lengths: NDArray | None = None) -> list[NDArray[np.int64]]:  # noqa: ANN401 - JSON
    """Return lists of costs as arrays; there must be at least one number in each."""
    lists = _lists(value, name)
    if lengths is not None and len(lists) != len(lengths):
        raise ValueError(f"{name} has {len(lists):,} lists for {len(lengths):,}")
    found = np.fromiter(map(len, lists), np.int64, len(lists))
    for i in np.flatnonzero(found == 0 if lengths is None else found != lengths)[:1].tolist():
        wanted = "at least 1" if lengths is None else f"{lengths[i]:,}"
        raise ValueError(f"{name}[{i}] has {found[i]:,} numbers, not {wanted}")
    return np.split(_numbers(lists, name), np.cumsum(found)[:-1]) if len(lists) else []


def _pairs(value: Any, name: str, length: int | None = None) -> NDArray[np.int64]:  # noqa: ANN401 - JSON
    lists = _lists(value, name)
    if length is not None and len(lists) != length:
        raise ValueError(f"{name} has {len(lists):,} pairs for {length:,} nodes")
    for i, item in enumerate(lists):
        if len(item) != 2:
            raise ValueError(f"{name}[{i}] has {len(item)} numbers, not 2")
    return _numbers(lists, name).reshape(-1, 2)


def _numbers(lists: list[list[Any]], name: str) -> NDArray[np.int64]:
    """Return all numbers one after another; `fromiter` alone would cut fractions off."""
    if set(map(type, chain.from_iterable(lists))) <= {int}:
        try:
            numbers = np.fromiter(chain.from_iterable(lists), np.int64)
        except OverflowError:
            numbers = np.full(1, -1)
        if not len(numbers) or numbers.min() >= 0:
            return numbers
    for i, item in enumerate(lists):
        _integers(item, f"{name}[{i}]")
    raise AssertionError(name)


def _integers(items: Sequence[Any], name: str) -> None:
    for item in items:
        if type(item) is not int:
            raise ValueError(f"{name} holds {_kind(item)}; it must hold integers")
        if not 0 <= item <= LARGEST:
            raise ValueError(f"{name} holds {str(item)[:40]}; numbers must be from 0 to 2^63 - 1")


def _kind(value: Any) -> str:  # noqa: ANN401 - JSON
    return {list: "a list", dict: "an object", str: "text", type(None): "null"}.get(type(value), str(value)[:40])
