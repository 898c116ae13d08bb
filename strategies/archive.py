"""The archive of proposed candidates, so that no evaluation is spent twice."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Enumeration, Space, Task

_RARE = 100


def is_small(task: Task, budget: int) -> bool:
    """Return true if the space has fewer candidates than 100 times the budget; else repeats are too rare to matter."""
    return task.space.cardinality < _RARE * budget


class Archive:
    """The digests of all proposed candidates.

    Args:
      space: of the candidates.
      rng: shuffles the order of the walk over the rest of the space.
    """

    def __init__(self, space: Space, rng: Generator) -> None:
        self._space, self._rng = space, rng
        self._proposed: set[str] = set()
        self._walk: Enumeration | None = None
        self._position = 0

    def digests(self, configs: NDArray) -> list[str]:
        """Return the digests of `(n, d)` candidates, by which the archive knows them."""
        return self._space.digests(configs)

    def fresh(self, digests: list[str]) -> NDArray[np.int64]:
        """Return the ascending places of candidates that were never proposed; of equal ones only the first."""
        if self._proposed.isdisjoint(digests) and len(set(digests)) == len(digests):  # nearly always, in large spaces
            return np.arange(len(digests))
        first = {digest: i for i, digest in reversed(list(enumerate(digests)))}
        return np.array(sorted(i for digest, i in first.items() if digest not in self._proposed), np.int64)

    def claim(self, configs: NDArray, n: int) -> NDArray[np.int64]:
        """Return the places of the first `n` rows that were never proposed; they count as proposed now."""
        digests = self.digests(configs)
        rows = self.fresh(digests)[:n]
        self.add([digests[i] for i in rows])
        return rows

    def add(self, digests: list[str]) -> None:
        """Count these as proposed."""
        self._proposed.update(digests)

    def others(self, n: int) -> NDArray:
        """Return up to `n` new candidates from a shuffled walk over the whole space; no rows only at its end."""
        more = np.zeros((0, len(self._space)), self._space.dtype)
        if n:
            self._walk = self._walk or Enumeration(self._space, self._rng)
        while n and not len(more) and self._walk and self._position < self._walk.length:
            step = self._walk.rows(self._position, self._position + n)
            self._position += n
            more = step[self.claim(step, n)]
        return more
