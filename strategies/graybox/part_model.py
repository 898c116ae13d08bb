"""A regressor of the log cost of parts, chosen by its score."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .. import regressors
from .model_arrays import OF, arrays, predict_all

_FOLDS, _SCORED, _FITTED = 3, 400, 3000


class PartModel:
    """Predicts the log cost of parts from their features.

    Args:
      width: the number of features.
      estimate: the feature with the compiler's own estimate; None if there is none, or if it is not to be used.
      rng: draws folds, rows and the seeds of the regressors.

    Attributes:
      scores: R^2 of the log cost in the last cross-validation, by regressor.
      arrays: of the chosen one; at first, every part costs its estimate, or the same.
    """

    def __init__(self, width: int, estimate: int | None, rng: Generator) -> None:
        self._estimate, self._rng = estimate, rng
        self.scores: dict[str, float] = {}
        self.arrays = arrays(np.zeros(width), np.ones(width), estimate, 0.0)

    def fit(self, features: NDArray[np.float64], logs: NDArray[np.float64], choose: bool) -> None:
        """Learn from the `(m, f)` features and `(m,)` log costs of parts; choose the regressor again if asked."""
        rows = np.arange(len(logs)) if len(logs) <= _FITTED else self._rng.choice(len(logs), _FITTED, replace=False)
        x, y = self._transformed(features[rows]), logs[rows]
        if self._estimate is not None:
            y = y - x[:, self._estimate]
        centre, scale = x.mean(axis=0), x.std(axis=0)
        scale = np.where(scale > 1e-9, scale, 1.0)
        x = (x - centre) / scale
        seed = int(self._rng.integers(2**31))
        candidates = _candidates(seed, len(y))
        with regressors.one_thread():
            if choose or not self.scores:
                scored = self._rng.permutation(len(y))[:_SCORED]
                self.scores = {
                    n: regressors.score(r, x[scored], y[scored], _FOLDS, seed) for n, r in candidates.items()
                }
            name = max(self.scores, key=lambda n: self.scores[n])
            fitted = regressors.fit(candidates[name], x, y)
        noise = float(np.sqrt(np.var(y) * np.clip(1 - self.scores[name], 0, 1)))
        self.arrays = arrays(centre, scale, self._estimate, noise, **OF[name](fitted))

    def _transformed(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return logarithms: of the estimate as it is, of others, which may be 0 or less, of 1 more than the size."""
        x = np.copysign(np.log1p(np.abs(features)), features)
        if self._estimate is not None:
            x[:, self._estimate] = np.log(features[:, self._estimate])
        return x

    def standardised(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `(m, f)` features as the model sees them."""
        return (self._transformed(features) - self.arrays.centre) / self.arrays.scale

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `(m,)` log costs of parts with `(m, f)` features, without noise."""
        return predict_all(self.arrays, np.ascontiguousarray(features))


def _candidates(seed: int, rows: int) -> dict[str, regressors.Regressor]:
    """Return the regressors of `mbo`; boosting is of a kind whose trees can be read."""
    from sklearn.ensemble import GradientBoostingRegressor

    boosting = GradientBoostingRegressor(
        n_estimators=40, learning_rate=0.15, max_leaf_nodes=15, max_depth=None, max_features=0.4, random_state=seed
    )
    return regressors.candidates(seed, rows) | {"boosting": boosting}
