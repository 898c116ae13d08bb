"""Which source of candidates gets how much of a batch: more for the one whose candidates gain more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

_LEAST, _LATER = 0.1, 0.3
_MEMORY = 0.98
_TRIALS = 20.0  # of the mean gain, which every arm is believed to have made before the first batch


class Arms:
    """Adaptive credit (as in P3BO, Angermueller et al. 2020): an arm's share follows what its candidates gain.

    Gains count, and not how many gain: models find many small ones that lead nowhere.

    Args:
      names: of the arms.
      rng: rounds shares to candidates.

    Attributes:
      progress: the part of the budget that is spent.
    """

    def __init__(self, names: Sequence[str], rng: Generator) -> None:
        self._names, self._rng = tuple(names), rng
        self._gains, self._trials = np.zeros(len(names)), np.zeros(len(names))
        self.progress = 0.0

    @property
    def shares(self) -> dict[str, float]:
        """The share of each arm; what happened 50 batches of its own ago counts little.

        None falls below `_LEAST`, which grows to `_LATER` in the first half of the budget: what models promise early
        is gone by then, and who follows the easy wins of one arm stops exploring.
        """
        least = _LEAST + (_LATER - _LEAST) * min(1.0, 2 * self.progress)
        mean = self._gains.sum() / max(1.0, self._trials.sum())
        rates = (self._gains + _TRIALS * mean) / (self._trials + _TRIALS)
        rates = rates / rates.sum() if mean else np.full(len(rates), 1 / len(rates))
        shares = least + (1 - least * len(rates)) * rates
        return dict(zip(self._names, shares.tolist(), strict=True))

    def draw(self, n: int, without: Sequence[str] = ()) -> dict[str, int]:
        """Return how many of `n` candidates each arm makes."""
        shares = np.array([0.0 if name in without else share for name, share in self.shares.items()])
        counts = self._rng.multinomial(n, shares / shares.sum())
        return {name: int(k) for name, k in zip(self._names, counts, strict=True) if k}

    def credit(self, makers: Sequence[str], gains: NDArray[np.float64]) -> None:
        """Take which arm made each of `(n,)` candidates, and what it cost less than its parent."""
        for i, name in enumerate(self._names):
            own = np.array([maker == name for maker in makers], bool)
            if own.any():
                self._gains[i] = _MEMORY * self._gains[i] + gains[own].sum()
                self._trials[i] = _MEMORY * self._trials[i] + own.sum()
