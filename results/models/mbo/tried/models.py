"""Which rows the models learn from, how they are scored, and what each counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

from bbo_strategies.mbo.ensemble import Ensemble
from bbo_strategies.mbo.failures import Failures
from bbo_strategies.mbo.regressors import Regressor, fit

Floats = NDArray[np.float64]
_MEMORY = 0.9


def pooled(regressor: Regressor, features: NDArray, targets: NDArray, folds: int, seed: int) -> float:
    """Return the R^2 of the predictions of all folds together.

    Where gains are rare a fold may hold hardly any, and then its own R^2 is far below any threshold.
    """
    predicted = np.empty(len(targets))
    for train, test in KFold(folds, shuffle=True, random_state=seed).split(features):
        predicted[test] = fit(regressor, features[train], targets[train]).predict(features[test])
    return float(r2_score(targets, predicted))


class Weighted(Ensemble):
    """Counts each of the best rows several times, so that they are a third of all."""

    def _select(self, x: NDArray[np.float32], y: NDArray[np.float32]) -> None:
        best = y == y.min()
        times = np.where(best, max(1, round((~best).sum() / 2 / best.sum())), 1)
        super()._select(np.repeat(x, times, axis=0), np.repeat(y, times))


class ByHits(Ensemble):
    """Weighs each regressor by how many improving changes are in the third of the last batches that it likes best."""

    def __init__(self, threshold: float, folds: int, rng: np.random.Generator) -> None:
        super().__init__(threshold, folds, rng)
        self._found: dict[str, tuple[float, float]] = {}

    def learn(self, features: NDArray[np.float32], values: Floats) -> None:
        """Count the hits of each regressor, then learn."""
        if self.members:
            for name, scores in zip(self.members, super().predict(features), strict=True):
                liked = np.argsort(scores, kind="stable")[: -(-len(scores) // 3)]
                hits, tries = self._found.get(name, (1.0, 4.0))
                hits, tries = _MEMORY * hits + (values[liked] < 0).sum(), _MEMORY * tries + len(liked)
                self._found[name] = hits, tries
        super().learn(features, values)

    def predict(self, features: NDArray[np.float32]) -> Floats:
        """Return the predictions, weighted so that their mean is the weighted one."""
        rates = np.array([np.divide(*self._found.get(name, (1.0, 4.0))) for name in self.members])
        weights = rates / rates.sum() if rates.sum() > 0 else np.full(len(rates), 1 / len(rates))
        return super().predict(features) * weights[:, None] * len(weights)


class KnownFailures(Failures):
    """Lets the regressors learn all failures, those with a suspect pair, too."""

    def learn(self, base: NDArray, children: NDArray, failed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Learn as usual, and explain nothing away."""
        super().learn(base, children, failed)
        return np.zeros(len(failed), bool)
