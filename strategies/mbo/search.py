"""The evolutionary search that maximises what the models promise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

_PARENTS = 5


def maximise(
    promise: Callable[[NDArray], NDArray[np.float64]],
    base: NDArray,
    change: Callable[[NDArray], NDArray],
    population: int,
    generations: int,
    rng: Generator,
) -> NDArray:
    """Return the changes of a base that the search visits, the most promising first, none of them the base itself.

    It starts from changes of the base. Each generation are children of the best fifth of all that was visited: the
    changes of two together, or one changed further.

    Args:
      promise: of `(n, d)` candidates, `(n,)`, large is promising.
      base: `(d,)`.
      change: returns `(n, d)` candidates, each changed.
      population: children in a generation.
      generations: how many.
      rng: draws parents.
    """
    visited = _different(change(np.repeat(base[None], population, axis=0)), base)
    known = promise(visited) if len(visited) else np.zeros(0)
    for _ in range(generations if len(visited) else 0):
        best = visited[np.argsort(-known, kind="stable")[: max(2, population // _PARENTS)]]
        brood = _different(_bred(base, best, change, population, rng), base)
        if len(brood):
            visited, known = np.concatenate([visited, brood]), np.append(known, promise(brood))
    return visited[np.argsort(-known, kind="stable")]


def _bred(base: NDArray, parents: NDArray, change: Callable[[NDArray], NDArray], n: int, rng: Generator) -> NDArray:
    first, second = parents[rng.integers(0, len(parents), (2, n))]
    joined = np.where(first != base, first, second)
    return np.concatenate([joined[: n // 2], change(first[n // 2 :])])


def _different(children: NDArray, base: NDArray) -> NDArray:
    return children[(children != base).any(axis=1)]
