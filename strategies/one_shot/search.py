"""One search on the predictor: the best settings of a group, by predictions alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Enumeration, Moves, Space

Score = Callable[[NDArray], NDArray[np.float32]]
"""Takes `(n, p)` candidates and returns their `(n,)` predicted costs, inf for those that are forbidden."""

_GENERATION, _PARENTS = 1024, 128


def ranked(space: Space, start: NDArray, score: Score, queries: int, rng: Generator) -> NDArray:
    """Return `(k, p)` different candidates in the order of their predicted costs, the best first.

    A space of no more than `queries` candidates is enumerated. A larger one is searched by evolution: the best of all
    so far are the parents of the next generation.

    Args:
      start: `(p,)` a candidate to start from.
      queries: predictions that may be asked for.
    """
    if space.cardinality <= queries:
        rows = Enumeration(space, rng).rows(0, space.cardinality)
        return _sorted(rows, score(rows))[0]
    rows = _different(np.vstack([start[None], space.sample(_GENERATION - 1, rng)]))
    rows, costs = _sorted(rows, score(rows))
    moves = Moves(space)
    for _ in range(queries // _GENERATION - 1):
        new = _different(np.vstack([rows, _children(rows[:_PARENTS], moves, rng)]))[len(rows) :]
        rows, costs = _sorted(np.vstack([rows, new]), np.concatenate([costs, score(new)]))
    return rows[np.isfinite(costs)]


def _sorted(rows: NDArray, costs: NDArray[np.float32]) -> tuple[NDArray, NDArray[np.float32]]:
    order = np.argsort(costs, kind="stable")
    order = order[np.isfinite(costs[order])]
    return rows[order], costs[order]


def _different(rows: NDArray) -> NDArray:
    """Return the rows without repetitions, in their order."""
    rows = np.ascontiguousarray(rows)
    keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    return rows[np.sort(np.unique(keys, return_index=True)[1])]


def _children(parents: NDArray, moves: Moves, rng: Generator) -> NDArray:
    """Return crossovers of two parents that are drawn in favour of the best, changed in one to three places."""
    mothers, fathers = (np.floor(len(parents) * rng.random(_GENERATION) ** 2).astype(int) for _ in range(2))
    children = moves.cross(parents[mothers], parents[fathers], rng)
    return moves.mutate(children, rng.integers(1, 4, _GENERATION), rng)
