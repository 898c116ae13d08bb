"""What a fleet has learned about the gains of methods, by family: empirical Bayes with a weak prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .jobs import RANKED, Method

_GAIN, _MORE, _LEFT = 0.05, 0.005, 0.5
"""What is expected before anything is measured: of a kernel without a result, with one, and of an old result's gain."""
_WEIGHT = 5.0
"""Results that the mean over all families counts for in a family, and the first expectation counts for in all."""


class Beliefs:
    """Means of measured gains, by method and family, of kernels without and with a stored result."""

    def __init__(self, families: int) -> None:
        self._sums, self._counts = (np.zeros((len(Method), 2, families)) for _ in range(2))
        self._old, self._kept = 0.0, 0.0
        self._predicted, self._found = 0.0, 0.0

    def learn(
        self,
        method: Method,
        family: NDArray[np.int64],
        before: NDArray[np.float64],
        after: NDArray[np.float64],
        old: NDArray[np.float64],
        predicted: NDArray[np.float64] | None,
    ) -> None:
        """Take `(n,)` measured gains before and after a method, the old compiler's, and what a model had predicted."""
        more = np.maximum(0, after - before)
        np.add.at(self._sums[method], ((before > 0).astype(int), family), more)
        np.add.at(self._counts[method], ((before > 0).astype(int), family), 1)
        if method == Method.REVALIDATE:
            self._old, self._kept = self._old + old.sum(), self._kept + after.sum()
        if method in RANKED and predicted is not None:
            new = before == 0
            self._predicted, self._found = self._predicted + predicted[new].sum(), self._found + after[new].sum()

    def expected(
        self,
        method: Method,
        family: NDArray[np.int64],
        has: NDArray[np.bool_],
        old: NDArray[np.float64],
        predicted: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """Return the `(n,)` gains to expect beyond what is stored."""
        if method == Method.REVALIDATE:
            kept = (self._kept + _WEIGHT * _GAIN * _LEFT) / (self._old + _WEIGHT * _GAIN)
            return np.where(has, 0.0, np.nan_to_num(old) * kept)
        sums, counts = self._sums[method], self._counts[method]
        overall = (sums.sum(axis=1) + _WEIGHT * np.array([_GAIN, _MORE])) / (counts.sum(axis=1) + _WEIGHT)
        means = (sums + _WEIGHT * overall[:, None]) / (counts + _WEIGHT)
        found = means[has.astype(int), family]
        if method not in RANKED or predicted is None:
            return found
        right = (self._found + _WEIGHT * _GAIN) / (self._predicted + _WEIGHT * _GAIN)
        return np.where(has, found, right * np.maximum(predicted, 0))
