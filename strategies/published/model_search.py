"""Searches on a surrogate: trees that predict how good a candidate is from its indices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Space
from bbo_suite.compiled import compiled_for

from ..archive import Archive
from ..regressors import Trees, one_thread, trees_of
from .planned import Planned

compiled = compiled_for(__file__)

_MOST = 2000
_FEATURES = 30
"""The least number of parameters that a split chooses from."""

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
      rows, costs: the last candidates that it learned from.
      growth: by how much what is known has to grow before it is fitted again.
    """

    growth: ClassVar[float] = 0.25

    def __init__(self, space: Space, target: Target, rng: Generator, fits: bool = True) -> None:
        self._target, self._rng, self._fits = target, rng, fits
        self.rows: NDArray = np.empty((0, len(space)), space.dtype)
        self.costs = np.empty(0)
        self._new, self._known = 0, 0
        self._trees: Trees | None = None
        self._readers = np.empty(0, np.int64), np.zeros(len(space) + 1, np.int64)
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
        if self._fits and self._new >= self.growth * self._known and np.isfinite(self.costs).any():
            self._new, self._known = 0, len(self.costs)
            with one_thread():
                self._fit(self.rows.astype(np.float32), self._target(self.costs))

    def _fit(self, x: NDArray[np.float32], y: NDArray[np.float64]) -> None:
        from sklearn.ensemble import GradientBoostingRegressor

        seed, share = int(self._rng.integers(2**31)), max(0.1, min(1.0, _FEATURES / x.shape[1]))
        model = GradientBoostingRegressor(learning_rate=0.3, max_depth=3, max_features=share, random_state=seed)
        model.fit(x, y)
        self._grow(list(model.estimators_[:, 0]))
        self._weights = model.learning_rate, float(model.init_.constant_[0, 0])

    def _grow(self, estimators: list[Any]) -> None:
        """Keep the fitted trees, and for each parameter the trees that read it."""
        self._trees = trees_of(estimators)
        tree = np.searchsorted(self._trees.roots, np.arange(len(self._trees.feature)), side="right") - 1
        reads = np.unique(np.column_stack([self._trees.feature, tree])[self._trees.feature >= 0], axis=0)
        starts = np.searchsorted(reads[:, 0], np.arange(self.rows.shape[1] + 1))
        self._readers = np.ascontiguousarray(reads[:, 1]), starts

    def predict(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` predictions of candidates."""
        return self.scores(self.leaves(configs))

    def leaves(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(t, n)` values of the leaves that candidates reach in each tree."""
        assert self._trees is not None
        return _leaves(self._trees, np.ascontiguousarray(configs))

    def leaves_after(self, configs: NDArray, leaves: NDArray[np.float64], changed: NDArray) -> NDArray[np.float64]:
        """Return the leaves of changed candidates: only trees that read a changed parameter are walked again."""
        assert self._trees is not None
        places = np.divmod(
            np.flatnonzero(changed != configs), changed.shape[1]
        )  # faster than nonzero in two dimensions
        return _leaves_after(self._trees, *self._readers, leaves.copy(), np.ascontiguousarray(changed), *places)

    @property
    def size(self) -> int:
        """The number of trees."""
        return len(self._trees.roots) if self._trees else 0

    def leaf_of(self, configs: NDArray, trees: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the `(n,)` values of the leaves that candidates reach, each in a tree of its own."""
        assert self._trees is not None
        return _leaf_of(self._trees, np.ascontiguousarray(configs), trees)

    def scores(self, leaves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `(n,)` predictions of candidates that reach `(t, n)` leaves."""
        rate, base = self._weights
        return base + rate * leaves.sum(axis=0)


class ForestSurrogate(Surrogate):
    """A random forest whose trees disagree where little is known; 10 trees and 10 parameters a split, as in AdaTune."""

    def _fit(self, x: NDArray[np.float32], y: NDArray[np.float64]) -> None:
        from sklearn.ensemble import RandomForestRegressor

        seed, features = int(self._rng.integers(2**31)), min(10, x.shape[1])
        model = RandomForestRegressor(n_estimators=10, max_features=features, random_state=seed).fit(x, y)
        self._grow(model.estimators_)
        self._best = float(y.max())

    def moments(self, configs: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the `(n,)` means and standard deviations of what the trees predict for candidates."""
        return _moments(self.leaves(configs))

    def scores(self, leaves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `(n,)` expected improvements of candidates that reach `(t, n)` leaves (Mockus 1975)."""
        from scipy.stats import norm

        means, deviations = _moments(leaves)
        gains = means - self._best
        z = gains / np.where(deviations > 0, deviations, 1.0)
        return np.where(deviations > 0, gains * norm.cdf(z) + deviations * norm.pdf(z), np.maximum(gains, 0.0))


def _moments(leaves: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    means = leaves.sum(axis=0) / len(leaves)
    return means, np.sqrt(np.maximum((leaves**2).sum(axis=0) / len(leaves) - means**2, 0.0))


class ModelSearch(Planned):
    """A search whose plans are the best candidates that it finds on a surrogate, and random ones.

    The first plan is random, with the default.
    """

    options: Any
    surrogate: Surrogate

    def begin(self) -> NDArray:
        """Return the rest of the first plan."""
        return self.task.space.sample(self.options.plan - 1, self.rng)

    def remember(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Fit the surrogate."""
        self.surrogate.learn(configs, values)

    def share(self) -> float:
        """Return the share of random candidates in the next plan."""
        return self.options.random

    def plan(self) -> NDArray:
        """Return the next plan."""
        if not self.surrogate.is_fitted:  # nothing has run so far
            return self.random(self.options.plan)
        count = int(self.options.plan * self.share())
        best = BestFound(self.task.space, self.archive, self.options.plan - count)
        self.explore(best)
        if not len(best.rows):
            return self.random(self.options.plan)
        return np.concatenate([self.new(self.chosen(best.rows)), self.random(count)])

    def chosen(self, configs: NDArray) -> NDArray:
        """Return which of the best candidates on the surrogate are measured: all."""
        return configs

    @abstractmethod
    def explore(self, best: BestFound) -> None:
        """Search on the surrogate."""


class BestFound:
    """The candidates with the highest scores among those that were never proposed.

    Args:
      space: of the candidates.
      archive: knows what was proposed.
      most: their number.

    Attributes:
      rows: `(k, d)` the candidates, best first.
    """

    def __init__(self, space: Space, archive: Archive, most: int) -> None:
        self._archive, self._most = archive, most
        self.rows: NDArray = np.empty((0, len(space)), space.dtype)
        self._scores, self._digests = np.empty(0), np.empty(0, object)

    def add(self, configs: NDArray, scores: NDArray[np.float64]) -> bool:
        """Consider `(n, d)` candidates, and return whether one of them is taken."""
        full = len(self._scores) >= self._most
        places = np.flatnonzero(scores > self._scores[-1]) if full else np.arange(len(scores))
        if not self._most or not len(places):
            return False
        digests, chosen = self._archive.digests(configs[places]), set(self._digests)
        fresh = [i for i in self._archive.fresh(digests).tolist() if digests[i] not in chosen]
        places, names = places[fresh], np.array([digests[i] for i in fresh], object)
        scores = np.concatenate([self._scores, scores[places]])
        order = np.argsort(-scores, kind="stable")[: self._most]
        self.rows, self._scores = np.concatenate([self.rows, configs[places]])[order], scores[order]
        self._digests = np.concatenate([self._digests, names])[order]
        return bool(len(places))


@compiled()
def _leaf(trees: Trees, root: int, row: NDArray) -> float:
    node = root
    while trees.feature[node] >= 0:
        is_left = row[trees.feature[node]] <= trees.threshold[node]
        node = trees.left[node] if is_left else trees.right[node]
    return trees.value[node]


@compiled()
def _leaves(trees: Trees, rows: NDArray) -> NDArray:
    """Return the `(t, n)` values of the leaves that `(n, d)` candidates reach."""
    leaves = np.empty((len(trees.roots), len(rows)))
    for i in range(len(rows)):
        for k in range(len(trees.roots)):
            leaves[k, i] = _leaf(trees, trees.roots[k], rows[i])
    return leaves


@compiled()
def _leaf_of(trees: Trees, rows: NDArray, numbers: NDArray) -> NDArray:
    """Return the `(n,)` value of the leaf that candidate i reaches in tree `numbers[i]`."""
    leaves = np.empty(len(rows))
    for i in range(len(rows)):
        leaves[i] = _leaf(trees, trees.roots[numbers[i]], rows[i])
    return leaves


@compiled()
def _leaves_after(
    trees: Trees, readers: NDArray, starts: NDArray, leaves: NDArray, rows: NDArray, changed: NDArray, columns: NDArray
) -> NDArray:
    """Set, in place, the leaves of each tree that reads parameter `columns[k]` of candidate `changed[k]`."""
    for i, column in zip(changed, columns):  # noqa: B905 - numba knows no strict
        for k in readers[starts[column] : starts[column + 1]]:
            leaves[k, i] = _leaf(trees, trees.roots[k], rows[i])
    return leaves
