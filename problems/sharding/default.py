"""A first candidate that works: the one of least memory, repaired where it contains an impossible cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .evaluation import Arrays, State, arrays_of, begin, change
from .graph import IMPOSSIBLE, ShardingGraph

compiled = compiled_for(__file__)

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
    limit = np.iinfo(np.int64).max if graph.limit is None else graph.limit
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
    room = limit + usage - _peak(i, graph, state)
    for value in range(graph.sizes[i]):
        used = graph.usages[graph.firsts[i] + value]
        if used <= room and value != state.config[i]:
            weight = _weight(i, value, graph, state, weights)
            if weight < now or (weight == now and used < usage):
                best, now, usage = value, weight, used
    return best


@compiled()
def _peak(i: int, graph: Arrays, state: State) -> np.int64:
    """Return the most bytes while a node lives."""
    most = np.int64(0)
    for t in range(graph.begins[i], graph.ends[i]):
        most = max(most, state.memory[t])
    return most


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
