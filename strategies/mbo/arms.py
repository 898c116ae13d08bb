"""The share of each source of candidates in a batch: more for the one whose candidates gain more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..shares import Credit, probability_matching, proportions

_LEAST, _LATER = 0.1, 0.3
_MEMORY = 0.98
_TRIALS = 20.0  # trials with the mean gain that every arm is assumed to have made before the first batch


class Arms:
    """Adaptive credit (as in P3BO, Angermueller et al. 2020): an arm's share follows what its candidates gain.

    It follows the sum of the gains, not their number: models find many small gains that lead nowhere.

    Args:
      names: of the arms.
      rng: draws how many candidates of a batch each arm makes.

    Attributes:
      progress: the share of the budget that is spent.
    """

    def __init__(self, names: Sequence[str], rng: Generator) -> None:
        self._names, self._rng = tuple(names), rng
        self._credit = Credit(len(names))
        self.progress = 0.0

    @property
    def shares(self) -> dict[str, float]:
        """The share of each arm; what happened 50 of its own batches ago counts little.

        No share falls below `_LEAST`, which grows to `_LATER` in the first half of the budget: by then the early gains
        of the models are used up, and a search that followed them alone would stop exploring.
        """
        least = _LEAST + (_LATER - _LEAST) * min(1.0, 2 * self.progress)
        gains, trials = self._credit.gains, self._credit.trials
        mean = gains.sum() / max(1.0, trials.sum())
        rates = proportions((gains + _TRIALS * mean) / (trials + _TRIALS))
        return dict(zip(self._names, probability_matching(rates, least).tolist(), strict=True))

    def draw(self, n: int, without: Sequence[str] = ()) -> dict[str, int]:
        """Return how many of `n` candidates each arm makes."""
        chances = np.array([0.0 if name in without else share for name, share in self.shares.items()])
        counts = self._rng.multinomial(n, chances / chances.sum())
        return {name: int(k) for name, k in zip(self._names, counts, strict=True) if k}

    def credit(self, makers: Sequence[str], gains: NDArray[np.float64]) -> None:
        """Learn how much less each of `(n,)` candidates cost than its parent; `makers` names the arm that made it."""
        for i, name in enumerate(self._names):
            mask = np.array([maker == name for maker in makers], bool)
            if mask.any():
                self._credit.learn(i, gains[mask].sum(), mask.sum(), _MEMORY)
