"""What was ever proposed, so that no evaluation is spent twice."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Enumeration, Space


class Archive:
    """The digests of all proposed candidates.

    Args:
      space: of the candidates.
      rng: shuffles the order in which the rest of a space is walked.
    """

    def __init__(self, space: Space, rng: Generator) -> None:
        self._space, self._rng = space, rng
        self._proposed: set[str] = set()
        self._walk: Enumeration | None = None
        self._position = 0

    def fresh(self, configs: NDArray) -> NDArray[np.int64]:
        """Return the rows, in order, that were never proposed, each candidate once."""
        first = {digest: i for i, digest in reversed(list(enumerate(self._space.digests(configs))))}
        return np.array(sorted(i for digest, i in first.items() if digest not in self._proposed), np.int64)

    def claim(self, configs: NDArray, n: int) -> NDArray[np.int64]:
        """Return the first `n` rows that were never proposed, each candidate once; they count as proposed."""
        rows = self.fresh(configs)[:n]
        self.add(configs[rows])
        return rows

    def add(self, configs: NDArray) -> None:
        """Count these as proposed."""
        self._proposed.update(self._space.digests(configs))

    def others(self, n: int) -> NDArray:
        """Return up to `n` new candidates on a seeded walk over the whole space; none only at its end."""
        more = np.zeros((0, len(self._space)), self._space.dtype)
        if n:
            self._walk = self._walk or Enumeration(self._space, self._rng)
        while n and not len(more) and self._walk and self._position < self._walk.length:
            step = self._walk.rows(self._position, self._position + n)
            self._position += n
            more = step[self.claim(step, n)]
        return more
