"""Ridge regression that takes new rows without looking at the old ones again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class NormalEquations:
    """The Gram matrix of all features so far: w features cost w^2 a new row, and w^3 / 3 a solution.

    Args:
      width: number of features.
    """

    def __init__(self, width: int) -> None:
        self._gram = np.zeros((width, width))
        self._sum = np.zeros(width)
        self.rows = 0

    def add(self, features: NDArray[np.float32]) -> None:
        """Take `(n, width)` new rows."""
        self._gram += features.T @ features
        self._sum += features.sum(axis=0, dtype=np.float64)
        self.rows += len(features)

    def solve(self, features: NDArray[np.float32], targets: NDArray[np.float32], penalty: float) -> Line:
        """Return the ridge regression of all rows; `features` and `targets` are of the rows added so far, in order.

        Targets are given anew because normal scores change with every batch; that costs one pass, not a new matrix.
        """
        from scipy.linalg import solve

        centre, level = self._sum / self.rows, float(targets.mean())
        matrix = self._gram - np.outer(self._sum, centre)
        matrix[np.diag_indices_from(matrix)] += penalty
        side = features.T @ (targets - np.float32(level))
        weights = solve(matrix, side, assume_a="pos", overwrite_a=True, check_finite=False)
        return Line(weights.astype(np.float32), level - float(centre @ weights))


class Line:
    """A linear function of the features."""

    def __init__(self, weights: NDArray[np.float32], offset: float) -> None:
        self.weights, self.offset = weights, offset

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the `(n,)` targets of `(n, width)` features."""
        return features @ self.weights + np.float32(self.offset)
