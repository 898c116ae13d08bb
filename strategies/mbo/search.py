"""The evolutionary search that maximises what the models promise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .proposals import Proposals

_PARENTS = 5


def maximise(
    promise: Callable[[NDArray], NDArray[np.float64]],
    base: NDArray,
    proposals: Proposals,
    population: int,
    generations: int,
) -> NDArray:
    """Return the changes of a base that the search visits, the most promising first, none of them the base itself.

    It starts from single changes and windows, two of them for one; each generation are children of the best fifth of
    all that was visited.

    Args:
      promise: of `(n, d)` candidates, `(n,)`, large is promising.
      base: `(d,)`.
      proposals: draws the children.
      population: children in a generation.
      generations: how many.
    """
    singles = proposals.singles(base, population // 3)
    visited = _different(np.concatenate([singles, proposals.windows(base, population - len(singles))]), base)
    known = promise(visited) if len(visited) else np.zeros(0)
    for _ in range(generations if len(visited) else 0):
        best = visited[np.argsort(-known, kind="stable")[: max(2, population // _PARENTS)]]
        brood = _different(proposals.grown(base, best, population), base)
        if len(brood):
            visited, known = np.concatenate([visited, brood]), np.append(known, promise(brood))
    return visited[np.argsort(-known, kind="stable")]


def _different(children: NDArray, base: NDArray) -> NDArray:
    return children[(children != base).any(axis=1)]
