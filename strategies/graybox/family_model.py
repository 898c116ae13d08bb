"""Corrects the predictions of a model by the parts that were measured at alike places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .family_arrays import FamilyArrays, correct_all, diagonals, solve

LARGEST = 48
"""Points of a family: the cheapest ones, because a search asks for parts like them."""
_REACHES = (1.0, 2.0, 4.0, 8.0, 16.0)
_NUGGET, _GROWTH = 1e-4, 1.5


class FamilyModel:
    """A Gaussian process for each family of parts, on what the model of all parts leaves unexplained.

    Args:
      of: `(p,)` the family of each place.
      width: the number f of features.

    Attributes:
      arrays: the processes; at first without points, so that they correct nothing.
      rows: `(q,)` the measured parts that they know.
    """

    def __init__(self, of: NDArray[np.int64], width: int) -> None:
        self._of, self._reach, self._chosen_at = of, _REACHES[-1], 0
        self.arrays, self.rows = self._without_points(width), np.empty(0, np.int64)

    def _without_points(self, width: int) -> FamilyArrays:
        return self._empty(np.zeros((0, width)), np.zeros(0, np.int64), np.zeros(width))

    def _empty(self, x: NDArray[np.float64], families: NDArray[np.int64], scale: NDArray[np.float64]) -> FamilyArrays:
        counts = np.bincount(families, minlength=int(self._of.max(initial=0)) + 1)
        starts, blocks = (np.concatenate([[0], np.cumsum(n)]).astype(np.int64) for n in (counts, counts**2))
        weights, failures = np.zeros(len(x)), np.zeros(len(x))
        signals = np.zeros(len(counts))
        return FamilyArrays(
            self._of, starts, x, weights, failures, np.zeros(blocks[-1]), blocks, signals, scale, np.zeros(1)
        )

    def fit(
        self,
        x: NDArray[np.float64],
        residuals: NDArray[np.float64],
        families: NDArray[np.int64],
        order: NDArray[np.float64],
        variances: NDArray[np.float64],
        noise: float,
        choose: bool,
    ) -> None:
        """Learn from m measured parts.

        Args:
          x: `(m, f)` standardised features.
          residuals: `(m,)` of log costs; inf for a part that failed.
          families: `(m,)`.
          order: `(m,)` log costs; of a large family, the cheapest parts are kept.
          variances: `(m,)` of the measured residuals.
          noise: variance of residuals that is expected.
          choose: choose again how far a part tells of others, by the error of predicting each without itself.
        """
        rows = np.lexsort((order, families))
        place = np.arange(len(rows)) - np.searchsorted(families[rows], families[rows])
        rows = rows[place < LARGEST]
        x, residuals, families, variances = x[rows], residuals[rows], families[rows], variances[rows]
        self.rows = rows
        failed = np.isinf(residuals)
        data = x, np.where(failed, 0.0, residuals), families, failed.astype(float), variances / max(noise, 1e-12)
        if choose or len(x) >= _GROWTH * self._chosen_at:
            self._chosen_at = len(x)
            self._reach = min(_REACHES, key=lambda reach: self._solve(*data, noise, reach))
        self._solve(*data, noise, self._reach)

    def _solve(
        self,
        x: NDArray[np.float64],
        residuals: NDArray[np.float64],
        families: NDArray[np.int64],
        failed: NDArray[np.float64],
        nuggets: NDArray[np.float64],
        noise: float,
        reach: float,
    ) -> float:
        counts = np.maximum(np.bincount(families), 1)
        means = np.stack([np.bincount(families, column) for column in x.T], axis=1) / counts[:, None]
        spread = np.sqrt(((x - means[families]) ** 2).mean(axis=0))
        scale = np.where(spread > 1e-9, 1 / (reach * np.maximum(spread, 1e-9)), 0.0)
        self.arrays = self._empty(np.ascontiguousarray(x), families, scale)
        self.arrays.rate[0] = failed.mean()
        return solve(self.arrays, residuals, failed, nuggets + _NUGGET, max(noise, 1e-12))

    def left_out(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return by how much the `(q,)` residuals differ from what the others predict, and the variances of that."""
        arrays, diagonal = self.arrays, diagonals(self.arrays)
        return arrays.weights / diagonal, np.repeat(arrays.signals, np.diff(arrays.starts)) / diagonal

    def predict(self, x: NDArray[np.float64], families: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the `(k,)` residuals of parts with `(k, f)` standardised features."""
        return correct_all(self.arrays, np.ascontiguousarray(x), families, np.zeros(LARGEST))
