"""Sums the costs of candidates; of a candidate that is near the last one only what differs is computed again.

`feasible` finds a first candidate that works: the one of least memory, repaired where it contains an impossible cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space
from bbo_suite.compiled import compiled_for

from .graph import IMPOSSIBLE, LARGEST, ShardingGraph

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


_SWEEPS = 2_000


def feasible(graph: ShardingGraph) -> NDArray[np.int64] | None:
    """Return `(n,)` strategies within the limit and without an impossible cost; None if none is found.

    It starts from the least memory of each node, the first of equal ones. Then each node with an impossible cost takes
    the strategy with the least impossible costs that keeps the limit, the one of least memory among equals. Where this
    does not help, impossible costs that stay weigh more (breakout, Morris 1993, "The breakout method for escaping from
    local minima"). Without a limit the construction is the same.
    """
    n = len(graph.sizes)
    least = np.array([graph.usages[a:b].argmin() for a, b in zip(graph.firsts, graph.firsts[1:], strict=False)])
    state = State(np.full(n, -1), np.zeros(len(graph.times), np.int64), np.zeros(2, np.int64))
    arrays = arrays_of(graph)
    begin(least, arrays, state)
    limit = LARGEST if graph.limit is None else graph.limit
    weights = np.ones(len(graph.starts), np.int64)
    return state.config if _repair(arrays, state, limit, weights) else None


@compiled()
def _repair(graph: Arrays, state: State, limit: int, weights: NDArray) -> bool:
    for _ in range(_SWEEPS):
        for i in range(len(state.config)):
            now = _weight(i, state.config[i], graph, state, weights)
            if now:
                value = _best(i, now, limit, graph, state, weights)
                if value == state.config[i]:
                    _raise(i, graph, state, weights)
                else:
                    change(i, value, graph, state)
        if state.totals[1] == 0:
            return True
    return False


@compiled()
def _best(i: int, now: int, limit: int, graph: Arrays, state: State, weights: NDArray) -> int:
    best, usage = state.config[i], graph.usages[graph.firsts[i] + state.config[i]]
    free = _free(i, limit, graph, state)
    for value in range(graph.sizes[i]):
        used = graph.usages[graph.firsts[i] + value]
        if used <= free and value != state.config[i]:
            weight = _weight(i, value, graph, state, weights)
            if weight < now or (weight == now and used < usage):
                best, now, usage = value, weight, used
    return best


@compiled()
def _free(i: int, limit: int, graph: Arrays, state: State) -> np.int64:
    """Return the most bytes that a node may use while it lives; one that never lives may use any."""
    others = np.int64(0)
    for t in range(graph.begins[i], graph.ends[i]):
        others = max(others, state.memory[t] - graph.usages[graph.firsts[i] + state.config[i]])
    return limit - others if graph.begins[i] < graph.ends[i] else np.int64(LARGEST)


@compiled()
def _weight(i: int, value: int, graph: Arrays, state: State, weights: NDArray) -> int:
    """Return the weight of the impossible costs around a node if it has a strategy."""
    n = len(graph.sizes)
    total = 0
    if graph.tables[graph.starts[i] + value] >= IMPOSSIBLE:
        total += weights[i]
    for k in range(graph.around[i], graph.around[i + 1]):
        e = graph.touching[k]
        a = value if graph.first[e] == i else state.config[graph.first[e]]
        b = value if graph.second[e] == i else state.config[graph.second[e]]
        if graph.tables[graph.starts[n + e] + a * graph.sizes[graph.second[e]] + b] >= IMPOSSIBLE:
            total += weights[n + e]
    return total


@compiled()
def _raise(i: int, graph: Arrays, state: State, weights: NDArray) -> None:
    """Let the impossible costs around a node weigh more."""
    n, value = len(graph.sizes), state.config[i]
    weights[i] += graph.tables[graph.starts[i] + value] >= IMPOSSIBLE
    for k in range(graph.around[i], graph.around[i + 1]):
        e = graph.touching[k]
        row = graph.starts[n + e] + state.config[graph.first[e]] * graph.sizes[graph.second[e]]
        weights[n + e] += graph.tables[row + state.config[graph.second[e]]] >= IMPOSSIBLE
