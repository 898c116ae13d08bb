"""What the models promise of a candidate, and the evolutionary search that maximises it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves

Acquisition = Callable[[NDArray], NDArray]
"""Takes `(n, d)` candidates and returns `(n,)` numbers, large is promising."""


def children(parents: NDArray, n: int, moves: Moves, rng: Generator) -> NDArray:
    """Return `n` mutants of `(m, d)` parents, best first; half of them are crossovers before.

    A parent is drawn with a chance that falls linearly with its rank; a mutant has 1 change or more, 1.5 in the mean.
    """
    ranks = np.minimum(rng.integers(0, len(parents), (2, n)), rng.integers(0, len(parents), (2, n)))
    mothers, fathers = parents[ranks[0]], parents[ranks[1]]
    crossed = rng.random(n) < 0.5
    mothers[crossed] = moves.cross(mothers[crossed], fathers[crossed], rng)
    return moves.mutate(mothers, 1 + rng.poisson(0.5, n), rng)


def maximise(
    acquisition: Acquisition, start: NDArray, generations: int, children_each: int, moves: Moves, rng: Generator
) -> NDArray:
    """Return every candidate that a generational search visits, the most promising first.

    Args:
      acquisition: is evaluated `len(start) + generations * children_each` times, in batches.
      start: `(m, d)` first population; the best m of all visited are the next one.
      generations: how many.
      children_each: how many children a generation.
      moves: mutation and crossover.
      rng: draws parents and changes.
    """
    visited, promise = start, acquisition(start)
    for _ in range(generations):
        order = np.argsort(-promise, kind="stable")
        visited, promise = visited[order], promise[order]
        brood = children(visited[: len(start)], children_each, moves, rng)
        visited, promise = np.concatenate([visited, brood]), np.append(promise, acquisition(brood))
    return visited[np.argsort(-promise, kind="stable")]
