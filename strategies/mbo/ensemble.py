"""The ensemble of the selected regressors, and the rule for fitting it again."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from . import regressors
from .regressors import Predictor

FEWEST = 40
"""The smallest number of rows to which models are fitted."""

_MOST = 1500
_GROWTH, _STEP = 1.5, 750


class Ensemble:
    """The selected regressors, and the rows that they learn from.

    The publication fits to all data in every round, at a cost that grows with the data. Here models are scored,
    selected and fitted when the data has grown by half, later every `_STEP` rows, on the last `_MOST` rows. What a
    change gains depends on the state of the search, so old rows would mislead.

    Args:
      threshold: lowest score with which a regressor is selected.
      folds: of the cross-validation.
      rng: draws the folds and the seeds of the regressors.

    Attributes:
      scores: mean R^2 in the last cross-validation, by regressor.
      members: the selected regressors, fitted.
      no_gain: the target of a change that gains nothing.
      fits: how often they were fitted.
    """

    def __init__(self, threshold: float, folds: int, rng: Generator) -> None:
        self._threshold, self._folds, self._rng = threshold, folds, rng
        self._features, self._values = np.zeros((0, 0), np.float32), np.zeros(0)
        self._seen, self._due = 0, FEWEST
        self.no_gain, self.fits = 0.0, 0
        self.scores: dict[str, float] = {}
        self.members: dict[str, Predictor] = {}

    def learn(self, features: NDArray[np.float32], values: NDArray[np.float64]) -> None:
        """Add `(n, width)` features and `(n,)` cost differences; fit if enough are new."""
        old = self._features if self._seen else features[:0]
        self._features = np.concatenate([old, features])[-_MOST:]
        self._values = np.append(self._values, values)[-_MOST:]
        self._seen += len(values)
        if len(self._values) >= max(FEWEST, 2 * self._folds) and self._seen >= self._due:
            fitted = targets(self._values)
            self._due = self._seen + min(_STEP, int(self._seen * (_GROWTH - 1)))
            if fitted.any():
                self.no_gain = float(fitted.max())
                self._select(self._features, fitted)

    def _select(self, x: NDArray[np.float32], y: NDArray[np.float32]) -> None:
        self.fits += 1
        seed = int(self._rng.integers(2**31))
        candidates = regressors.candidates(seed, len(y))
        with regressors.one_thread():
            self.scores = {name: regressors.score(r, x, y, self._folds, seed) for name, r in candidates.items()}
            chosen = regressors.select(self.scores, self._threshold)
            self.members = {name: regressors.light(regressors.fit(candidates[name], x, y)) for name in chosen}

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return `(members, n)` predicted targets, small is good."""
        with regressors.one_thread(), regressors.quiet():
            return np.stack([member.predict(features) for member in self.members.values()]).astype(np.float64)

    def noise(self) -> float:
        """Return the standard deviation of standardised targets that the members leave unexplained."""
        unexplained = [1 - np.clip(self.scores[name], 0, 1) for name in self.members]
        return float(np.sqrt(np.mean(unexplained)))


def targets(differences: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return `(n,)` targets of cost differences, -log(1 + gain), standardised, small is good; all zeros without gains.

    How much a refused change costs does not matter. The mean of a model of the gain alone is an expected improvement
    (Mockus 1975) that assumes no distribution of costs: it is right where rare changes gain much, as long ones do. The
    logarithm keeps a few large gains from dominating the fit.
    """
    scores = -np.log1p(np.maximum(-differences, 0.0))
    spread = scores.std()
    return ((scores - scores.mean()) / (spread if spread > 1e-9 else 1.0)).astype(np.float32)
