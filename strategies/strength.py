"""The strength of mutation: how many changes a candidate gets, learned from what candidates gain."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .shares import Credit

_MOST, _PARAMETERS = 32, 64
_FLOOR = 0.1
_MEMORY = 0.995  # a trial counts half after 140 candidates
_TRIALS = 50.0  # trials with the mean gain that every number is assumed to have made


class Strength:
    """The number of changes of each candidate: 1, or 2, 4, ... or 32, at most one for every 64 parameters.

    Where most changes cost nothing, few gain and those gain much, as in tasks of thousands of parameters, single
    changes do not get through all parameters: a candidate with many changes tests them at once. Everywhere else a
    single change is best. So there are only single changes if less than half of them cost nothing. Else the share of
    each number follows the square of what its candidates gained; at first, and for a tenth of the candidates always,
    the shares fall with the number as a power law (Doerr et al. 2017, "Fast genetic algorithms").

    Args:
      parameters: that can change.
      rng: draws the numbers.
    """

    def __init__(self, parameters: int, rng: Generator) -> None:
        most = max(1, min(_MOST, parameters // _PARAMETERS))
        self._numbers = 2 ** np.arange(int(np.log2(most)) + 1)
        self._rng, self._credit = rng, Credit(len(self._numbers))
        self._single = self._idle = 0  # single changes, and those of them that cost nothing
        tail = 1 / self._numbers
        self._tail = tail / tail.sum()

    @property
    def is_sparse(self) -> bool:
        """True if at least half of the single changes cost nothing, and until the cost of one is known."""
        return 2 * self._idle >= self._single

    @property
    def shares(self) -> NDArray[np.float64]:
        """The shares of the numbers; before anything gained they follow the power law."""
        gains, trials = self._credit.gains, self._credit.trials
        mean = gains.sum() / max(1.0, trials.sum())
        if not mean > 0:
            return self._tail
        rates = (gains + _TRIALS * mean * self._tail * len(self._tail)) / (trials + _TRIALS)
        squares = (rates / rates.max()) ** 2
        return _FLOOR * self._tail + (1 - _FLOOR) * squares / squares.sum()

    def draw(self, n: int) -> NDArray[np.int64]:
        """Return the numbers of changes of `n` candidates."""
        if not self.is_sparse:
            return np.ones(n, np.int64)
        return self._numbers[np.searchsorted(np.cumsum(self.shares)[:-1], self._rng.random(n))]

    def learn(self, numbers: NDArray[np.int64], gains: NDArray[np.float64], idle: NDArray[np.bool_]) -> None:
        """Learn what `(k,)` candidates gained, 0 or more, which cost the same as before, and how many changes each had.

        Three changes count as two.
        """
        self._single += int((numbers == 1).sum())
        self._idle += int(((numbers == 1) & idle).sum())
        arms, k = np.log2(numbers).astype(int), len(self._numbers)
        self._credit.fade(_MEMORY ** len(numbers))
        self._credit.learn(slice(None), np.bincount(arms, gains, k), np.bincount(arms, minlength=k))


def relative_gains(cost: float | NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by which share each of `(k,)` costs is below another, between 0 and 1; 1 if only the other is infinite."""
    cost = np.broadcast_to(cost, values.shape)
    with np.errstate(invalid="ignore"):
        gains = cost - values
    known = np.isfinite(gains) & (gains > 0)
    shares = np.divide(gains, np.abs(cost), out=np.ones(len(values)), where=known & (cost != 0))
    return np.where(known, np.minimum(shares, 1.0), np.isinf(cost) & np.isfinite(values))
