"""Reads the JSON of the ASPLOS 2025 / EuroSys 2025 contest on intra-operator parallelism, plain or gzipped.

See https://github.com/google/iopddl. Nothing in a file is trusted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite.files.reading import parse_json, read_bounded

from ..reading import explained
from .graph import LARGEST, ShardingGraph, graph_of

_MOST_BYTES = 1 << 30
"""Largest text after unpacking; some 100 million pair costs."""
_FORMAT = "a problem of the ASPLOS 2025 contest on intra-operator parallelism"


def read(path: Path) -> ShardingGraph:
    """Return the graph in a file.

    Raises:
      UserError: it cannot be read, is no such file, or cannot be solved; one sentence says what and where.
    """
    with explained(path, _FORMAT):
        return _graph(parse_json(read_bounded(path, _MOST_BYTES)))


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
