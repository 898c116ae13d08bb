"""Surrogates: trees that predict how good a candidate is from its indices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Space

from ..mbo.regressors import one_thread
from ..trees import Trees, trees_of
from .compiled import compiled

_MOST, _GROWTH = 2000, 1.25
_FEATURES = 30
"""The least number of parameters that a split chooses from."""

Scores = Callable[[NDArray], NDArray[np.float64]]
"""Takes `(n, d)` candidates and returns `(n,)` predictions; large is good."""

Target = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Takes `(n,)` costs and returns what is to be predicted; large is good."""


def ranks(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the normal scores of `(n,)` costs, large is good; equal costs have equal scores."""
    from scipy.stats import norm, rankdata

    return norm.ppf((rankdata(-costs) - 0.5) / len(costs))


class Surrogate:
    """Boosted trees, of depth 3 and with a rate of 0.3 as AutoTVM sets XGBoost.

    All rounds fit the last 2,000 candidates. They are fitted again when a quarter more is known, or a quarter of 2,000.

    Args:
      space: of the candidates.
      target: what is predicted.
      rng: draws the seeds.
      fits: False to keep the candidates only.

    Attributes:
      rows, costs: the last candidates that it was told.
    """

    def __init__(self, space: Space, target: Target, rng: Generator, fits: bool = True) -> None:
        self._target, self._rng, self._fits = target, rng, fits
        self.rows: NDArray = np.empty((0, len(space)), space.dtype)
        self.costs = np.empty(0)
        self._new, self._known = 0, 0
        self._trees: Trees | None = None
        self._weights = 1.0, 0.0

    @property
    def is_fitted(self) -> bool:
        """True if it can predict."""
        return self._trees is not None

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Take the `(n,)` costs of candidates, and fit if enough are new."""
        self.rows = np.concatenate([self.rows, configs])[-_MOST:]
        self.costs = np.concatenate([self.costs, values])[-_MOST:]
        self._new += len(values)
        if self._fits and self._new >= (_GROWTH - 1) * self._known and np.isfinite(self.costs).any():
            self._new, self._known = 0, len(self.costs)
            with one_thread():
                self._fit(self.rows.astype(np.float32), self._target(self.costs))

    def _fit(self, x: NDArray[np.float32], y: NDArray[np.float64]) -> None:
        from sklearn.ensemble import GradientBoostingRegressor

        seed, share = int(self._rng.integers(2**31)), max(0.1, min(1.0, _FEATURES / x.shape[1]))
        model = GradientBoostingRegressor(learning_rate=0.3, max_depth=3, max_features=share, random_state=seed)
        model.fit(x, y)
        self._trees = trees_of(list(model.estimators_[:, 0]))
        self._weights = model.learning_rate, float(model.init_.constant_[0, 0])

    def predict(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` predictions of candidates."""
        rate, base = self._weights
        return base + rate * self._sums(configs)[0]

    def _sums(self, configs: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        assert self._trees is not None
        return _predictions(self._trees, np.ascontiguousarray(configs))


class ForestSurrogate(Surrogate):
    """A random forest whose trees disagree where little is known; 10 trees and 10 parameters a split, as in AdaTune."""

    def _fit(self, x: NDArray[np.float32], y: NDArray[np.float64]) -> None:
        from sklearn.ensemble import RandomForestRegressor

        seed, features = int(self._rng.integers(2**31)), min(10, x.shape[1])
        model = RandomForestRegressor(n_estimators=10, max_features=features, random_state=seed).fit(x, y)
        self._trees = trees_of(model.estimators_)
        self._best = float(y.max())

    def moments(self, configs: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the `(n,)` means and standard deviations of what the trees predict."""
        assert self._trees is not None
        count = len(self._trees.roots)
        sums, squares = self._sums(configs)
        means = sums / count
        return means, np.sqrt(np.maximum(squares / count - means**2, 0.0))

    def predict(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` expected improvements of candidates (Mockus 1975)."""
        from scipy.stats import norm

        means, deviations = self.moments(configs)
        gains = means - self._best
        z = gains / np.where(deviations > 0, deviations, 1.0)
        return np.where(deviations > 0, gains * norm.cdf(z) + deviations * norm.pdf(z), np.maximum(gains, 0.0))


@compiled()
def _predictions(trees: Trees, rows: NDArray) -> tuple[NDArray, NDArray]:
    """Return the `(n,)` sums of what the trees predict for `(n, d)` candidates, and of its squares."""
    sums, squares = np.zeros(len(rows)), np.zeros(len(rows))
    for i in range(len(rows)):
        for root in trees.roots:
            node = root
            while trees.feature[node] >= 0:
                is_left = rows[i, trees.feature[node]] <= trees.threshold[node]
                node = trees.left[node] if is_left else trees.right[node]
            sums[i] += trees.value[node]
            squares[i] += trees.value[node] ** 2
    return sums, squares
