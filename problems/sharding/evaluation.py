"""Sums the costs of candidates; of a candidate that is near the last one only what differs is computed again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space
from bbo_suite.compiled import compiled_for

from .graph import IMPOSSIBLE, ShardingGraph

compiled = compiled_for(__file__)

_FEW = 16
"""One strategy in so many may differ from the last candidate; if more do, all is computed again."""


class Arrays(NamedTuple):
    """A graph as compiled code reads it; the edges of node i are `touching[around[i]:around[i + 1]]`."""

    sizes: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    tables: NDArray[np.int64]
    starts: NDArray[np.int64]
    firsts: NDArray[np.int64]
    usages: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    around: NDArray[np.int64]
    touching: NDArray[np.int64]


class State(NamedTuple):
    """The last candidate.

    Attributes:
      config: `(n,)`; -1 at first.
      memory: bytes at each time.
      totals: the sum of costs without the impossible, and the number of impossible ones.
    """

    config: NDArray[np.int64]
    memory: NDArray[np.int64]
    totals: NDArray[np.int64]


class Evaluator:
    """Evaluates candidates of a graph.

    Results do not depend on what was evaluated before: all sums are of integers.
    """

    def __init__(self, graph: ShardingGraph) -> None:
        n = len(graph.sizes)
        self._arrays = arrays_of(graph)
        self._state = State(np.full(n, -1), np.zeros(len(graph.times), np.int64), np.zeros(2, np.int64))
        self._last = np.full((1, n), -1, Space(graph.sizes).dtype)

    def run(self, configs: NDArray) -> NDArray[np.int64]:
        """Return `(k, 4)` of `(k, n)` candidates.

        The columns are the sum of costs without the impossible, the number of impossible ones, the most bytes at once,
        and the step at which they live.
        """
        results = np.empty((len(configs), 4), np.int64)
        before = np.concatenate([self._last, configs[:-1]])
        rows, columns = np.nonzero(configs != before)
        _run(configs, np.searchsorted(rows, np.arange(len(configs) + 1)), columns, self._arrays, self._state, results)
        self._last = configs[-1:].copy()
        return results


def arrays_of(graph: ShardingGraph) -> Arrays:
    """Return a graph as compiled code reads it."""
    n, edges = len(graph.sizes), np.ascontiguousarray(graph.edges.T)
    ends, owners = edges.ravel(), np.tile(np.arange(edges.shape[1]), 2)
    order = np.argsort(ends, kind="stable")
    around = np.searchsorted(ends[order], np.arange(n + 1)).astype(np.int64)
    of_graph = (graph.tables, graph.starts, graph.firsts, graph.usages, graph.begins, graph.ends)
    return Arrays(graph.sizes, edges[0], edges[1], *of_graph, around, owners[order].astype(np.int64))


@compiled()
def _run(configs: NDArray, starts: NDArray, columns: NDArray, graph: Arrays, state: State, results: NDArray) -> None:
    for k in range(len(configs)):
        changed = columns[starts[k] : starts[k + 1]]
        if len(changed) * _FEW > len(state.config):
            begin(configs[k], graph, state)
        else:
            for i in changed:
                change(i, np.int64(configs[k, i]), graph, state)
        results[k, :2] = state.totals
        step = _highest(state.memory)
        results[k, 2], results[k, 3] = state.memory[step], step


@compiled(runtime=False)
def begin(config: NDArray, graph: Arrays, state: State) -> None:
    """Set the strategies of all nodes."""
    n = len(config)
    state.memory[:] = 0
    state.totals[:] = 0
    for i in range(n):
        value = np.int64(config[i])
        state.config[i] = value
        _add(graph.tables[graph.starts[i] + value], 1, state)
        if graph.begins[i] < graph.ends[i]:
            state.memory[graph.begins[i]] += graph.usages[graph.firsts[i] + value]
            state.memory[graph.ends[i]] -= graph.usages[graph.firsts[i] + value]
    for t in range(1, len(state.memory)):
        state.memory[t] += state.memory[t - 1]
    for e in range(len(graph.first)):
        _add(_edge(e, graph, state), 1, state)


@compiled(runtime=False)
def change(i: int, value: int, graph: Arrays, state: State) -> None:
    """Set the strategy of one node."""
    old = state.config[i]
    _add(graph.tables[graph.starts[i] + old], -1, state)
    _add(graph.tables[graph.starts[i] + value], 1, state)
    for k in range(graph.around[i], graph.around[i + 1]):
        _add(_edge(graph.touching[k], graph, state), -1, state)
    state.config[i] = value
    for k in range(graph.around[i], graph.around[i + 1]):
        _add(_edge(graph.touching[k], graph, state), 1, state)
    more = graph.usages[graph.firsts[i] + value] - graph.usages[graph.firsts[i] + old]
    if more:
        for t in range(graph.begins[i], graph.ends[i]):
            state.memory[t] += more


@compiled(runtime=False)
def _edge(e: int, graph: Arrays, state: State) -> int:
    a, b = graph.first[e], graph.second[e]
    row = graph.starts[len(graph.sizes) + e] + state.config[a] * graph.sizes[b]
    return graph.tables[row + state.config[b]]


@compiled(runtime=False)
def _add(cost: int, times: int, state: State) -> None:
    if cost >= IMPOSSIBLE:
        state.totals[1] += times
        cost -= IMPOSSIBLE
    state.totals[0] += times * cost


@compiled(runtime=False)
def _highest(memory: NDArray) -> int:
    """Return the first step with the most bytes."""
    most = memory[0]
    for t in range(1, len(memory)):
        most = max(most, memory[t])
    step = 0
    while memory[step] != most:
        step += 1
    return step
