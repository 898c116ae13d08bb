"""The good regressors as one, and when each is fitted again."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from . import regressors
from .regressors import RIDGE, Predictor
from .ridge import NormalEquations

GROWTH = 1.3
"""All candidates are scored and selected again once the data has grown by this factor."""

FEWEST = 10
"""No model below this many rows."""

_CELLS = 1_000_000
_ROWS = (500, 2000)


class Ensemble:
    """The mean prediction of the regressors that were selected, and how far they are apart.

    Deviation from the published "fitted to all data in every round", which costs hours at 10,000 rows: ridge follows
    every batch by its normal equations over all rows; the scores, the selection, and forest, boosting and network are
    renewed when the data grew by `GROWTH`, on 500 to 2,000 rows (fewer the wider): the best third and a random rest.
    In between, normal scores move a little under the models that were fitted before; their order does not.

    Args:
      width: number of features.
      threshold: score from which a regressor is selected.
      folds: of the cross-validation.
      rng: draws rows, folds and the seeds of the regressors.
    """

    def __init__(self, width: int, threshold: float, folds: int, rng: Generator) -> None:
        self._threshold, self._folds, self._rng = threshold, folds, rng
        self._equations = NormalEquations(width)
        self._most = int(np.clip(_CELLS // width, *_ROWS))
        self._selected_at, self._penalty = 0, regressors.PENALTIES[0]
        self.scores: dict[str, float] = {}
        self.members: dict[str, Predictor] = {}

    def update(self, features: NDArray[np.float32], targets: NDArray[np.float32]) -> bool:
        """Learn all `(n, width)` rows so far and return whether there is a model: enough rows that differ in cost."""
        if len(targets) < max(FEWEST, 2 * self._folds) or np.ptp(targets) == 0:
            return False
        self._equations.add(features[self._equations.rows :])
        if len(targets) >= GROWTH * self._selected_at:
            self._select(features, targets)
            self._selected_at = len(targets)
        if RIDGE in self.members:
            self.members[RIDGE] = self._equations.solve(features, targets, self._penalty)
        return True

    def _select(self, features: NDArray[np.float32], targets: NDArray[np.float32]) -> None:
        rows = self._subset(targets)
        x, y, seed = features[rows], targets[rows], int(self._rng.integers(2**31))
        lines = {p: regressors.score(line, x, y, self._folds, seed) for p, line in regressors.ridges().items()}
        self._penalty = max(lines, key=lambda p: lines[p])
        others = regressors.nonlinear(seed, len(rows))
        self.scores = {name: regressors.score(other, x, y, self._folds, seed) for name, other in others.items()}
        self.scores[RIDGE] = lines[self._penalty]
        chosen = regressors.select(self.scores, self._threshold)
        self.members = {name: regressors.fit(others[name], x, y) for name in chosen if name != RIDGE}
        if RIDGE in chosen:
            self.members[RIDGE] = regressors.ridges()[self._penalty]  # a place: `update` solves it on all rows

    def _subset(self, targets: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the rows to fit on: all, or the best third and a random rest."""
        if len(targets) <= self._most:
            return np.arange(len(targets))
        order = np.argsort(targets, kind="stable")
        best = self._most // 3
        return np.concatenate([order[:best], self._rng.permutation(order[best:])[: self._most - best]])

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return `(members, n)` predictions, small is good."""
        return np.stack([member.predict(features) for member in self.members.values()]).astype(np.float32)
