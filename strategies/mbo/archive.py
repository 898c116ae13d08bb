"""What is known: the costs so far as training data, the best candidates, and what was ever proposed."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Enumeration, Space

from .encoding import Encoding


class Archive:
    """Told candidates as features and costs, and the digests of all that were proposed.

    Of the candidates themselves only the best are kept: in a space of 500,000 parameters all of them would not fit.

    Args:
      space: of the candidates.
      encoding: of the candidates.
      elites: how many of the best candidates are kept.
      rng: shuffles the order in which the rest of a space is walked.
    """

    def __init__(self, space: Space, encoding: Encoding, elites: int, rng: Generator) -> None:
        self._space, self._encoding, self._keep, self._rng = space, encoding, elites, rng
        self._proposed: set[str] = set()
        self._walk: Enumeration | None = None
        self._position = 0
        self._features = np.zeros((256, encoding.width), np.float32)
        self.values = np.zeros(0)
        self.elites = np.zeros((0, len(space)), space.dtype)
        self._elite_values = np.zeros(0)

    @property
    def features(self) -> NDArray[np.float32]:
        """The `(n, width)` features of all told candidates, in the order they were told."""
        return self._features[: len(self.values)]

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Take `(n, d)` candidates and their `(n,)` costs."""
        start = len(self.values)
        self.values = np.append(self.values, np.where(np.isfinite(values), values, np.inf))
        if len(self.values) > len(self._features):
            spare = np.zeros((max(len(self.values), len(self._features)), self._encoding.width), np.float32)
            self._features = np.concatenate([self._features, spare])
        self._features[start : len(self.values)] = self._encoding.encode(configs)
        self._proposed.update(self._space.digests(configs))
        pool, costs = np.concatenate([self.elites, configs]), np.append(self._elite_values, self.values[start:])
        best = np.argsort(costs, kind="stable")[: self._keep]
        self.elites, self._elite_values = pool[best], costs[best]

    def fresh(self, configs: NDArray) -> NDArray[np.int64]:
        """Return the rows, in order, that were never proposed, each candidate once."""
        first = {digest: i for i, digest in reversed(list(enumerate(self._space.digests(configs))))}
        return np.array(sorted(i for digest, i in first.items() if digest not in self._proposed), np.int64)

    def claim(self, configs: NDArray, n: int) -> NDArray:
        """Return `n` candidates never proposed before: the first such rows, then any others of the space.

        Fewer are returned only when no other is left.
        """
        claimed = configs[self.fresh(configs)[:n]]
        self._proposed.update(self._space.digests(claimed))
        while len(claimed) < n and len(more := self._walk_on(n - len(claimed))):
            claimed = np.concatenate([claimed, more])
        return claimed

    def _walk_on(self, n: int) -> NDArray:
        """Return up to `n` new candidates on the seeded walk over the whole space; none only at its end."""
        self._walk = self._walk or Enumeration(self._space, self._rng)
        more = np.zeros((0, len(self._space)), self._space.dtype)
        while not len(more) and self._position < self._walk.length:
            step = self._walk.rows(self._position, self._position + n)
            self._position += n
            more = step[self.fresh(step)]
        self._proposed.update(self._space.digests(more))
        return more
