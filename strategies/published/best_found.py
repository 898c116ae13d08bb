"""The best new candidates that a search on a model comes across."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space

from ..archive import Archive


class BestFound:
    """Keeps the candidates with the highest scores among those that were never proposed.

    Args:
      space: of the candidates.
      archive: knows what was proposed.
      most: how many are kept.

    Attributes:
      rows: `(k, d)` the candidates, best first.
    """

    def __init__(self, space: Space, archive: Archive, most: int) -> None:
        self._archive, self._most = archive, most
        self.rows: NDArray = np.empty((0, len(space)), space.dtype)
        self._scores, self._digests = np.empty(0), np.empty(0, object)

    def add(self, configs: NDArray, scores: NDArray[np.float64]) -> bool:
        """Consider `(n, d)` candidates, and return whether one of them is kept."""
        full = len(self._scores) >= self._most
        places = np.flatnonzero(scores > self._scores[-1]) if full else np.arange(len(scores))
        if not self._most or not len(places):
            return False
        digests, held = self._archive.digests(configs[places]), set(self._digests)
        fresh = [i for i in self._archive.fresh(digests).tolist() if digests[i] not in held]
        places, names = places[fresh], np.array([digests[i] for i in fresh], object)
        scores = np.concatenate([self._scores, scores[places]])
        order = np.argsort(-scores, kind="stable")[: self._most]
        self.rows, self._scores = np.concatenate([self.rows, configs[places]])[order], scores[order]
        self._digests = np.concatenate([self._digests, names])[order]
        return bool(len(places))
