"""A regressor of the log cost of parts, chosen by its score, in a form that compiled code evaluates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .. import regressors
from ..regressors import Trees, trees_of

compiled = compiled_for(__file__)


_FOLDS, _SCORED, _FITTED = 3, 400, 3000


class Regressor:
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


class ModelArrays(NamedTuple):
    """A fitted model: log cost = offset + a linear model, or trees, or a network.

    Attributes:
      estimate: `(1,)` the feature whose logarithm is the offset; -1 for no offset.
      noise: `(1,)` the standard deviation of what the model does not explain.
      centre, scale: `(f,)` of the features' logarithms.
      weights: `(f + 1,)` of the linear model, the constant last; empty without one.
      trees: no trees if the model has none.
      rate: `(2,)` the weight of each tree, and the constant that they start from.
      first, second: `(f + 1, h)` and `(h + 1,)` weights of the network's layers, constants last; empty without one.
    """

    estimate: NDArray[np.int64]
    noise: NDArray[np.float64]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    weights: NDArray[np.float64]
    trees: Trees
    rate: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]


def arrays(
    centre: NDArray, scale: NDArray, estimate: int | None, noise: float, trees: Trees | None = None, **others: NDArray
) -> ModelArrays:
    """Return the arrays of a model; what is left out is empty, and a model of nothing adds 0."""
    empty = {
        "rate": np.empty(0),
        "second": np.empty(0),
        "first": np.empty((0, 0)),
        "weights": np.zeros(len(centre) + 1),
    }
    single = {"estimate": np.array([-1 if estimate is None else estimate]), "noise": np.array([noise])}
    numbers = empty | single | {"centre": centre, "scale": scale} | others
    contiguous: dict[str, Any] = {name: np.ascontiguousarray(array) for name, array in numbers.items()}
    return ModelArrays(trees=trees_of([]) if trees is None else trees, **contiguous)


def of_ridge(fitted: Any) -> dict[str, NDArray]:  # noqa: ANN401 - scikit-learn has no types
    """Return the arrays of a scaler and a linear model."""
    scaler, ridge = fitted[0], fitted[1]
    weights = ridge.coef_ / scaler.scale_
    return {"weights": np.append(weights, ridge.intercept_ - weights @ scaler.mean_)}


def of_network(fitted: Any) -> dict[str, NDArray]:  # noqa: ANN401
    """Return the arrays of a scaler and a network with one hidden layer."""
    scaler, network = fitted[0], fitted[1]
    first, second = (np.vstack([w, b]) for w, b in zip(network.coefs_, network.intercepts_, strict=True))
    first[-1] -= (scaler.mean_ / scaler.scale_) @ first[:-1]
    first[:-1] /= scaler.scale_[:, None]
    return {"first": first, "second": second[:, 0]}


def of_forest(fitted: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the arrays of a random forest."""
    return {"rate": np.array([1 / len(fitted.estimators_), 0.0]), "trees": trees_of(fitted.estimators_)}


def of_boosting(fitted: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the arrays of boosted trees."""
    rate = np.array([fitted.learning_rate, float(fitted.init_.constant_[0, 0])])
    return {"rate": rate, "trees": trees_of(list(fitted.estimators_[:, 0]))}


OF: dict[str, Callable[[Any], dict[str, Any]]] = {
    "ridge": of_ridge,
    "forest": of_forest,
    "boosting": of_boosting,
    "network": of_network,
}
"""By regressor: a function that takes it, fitted, and returns its arrays."""


@compiled()
def predict_all(model: ModelArrays, features: NDArray) -> NDArray:
    """Return the `(m,)` log costs of parts with `(m, f)` features."""
    logs, row = np.empty(len(features)), np.empty(features.shape[1])
    for i in range(len(features)):
        row[:] = features[i]
        logs[i] = predict(model, row)
    return logs


@compiled(runtime=False)
def predict(model: ModelArrays, features: NDArray) -> float:
    """Return the log cost of a part; its `(f,)` features are standardised in place."""
    offset, estimate = 0.0, model.estimate[0]
    for i in range(len(features)):
        log = np.log(features[i]) if i == estimate else np.copysign(np.log1p(abs(features[i])), features[i])
        offset += log if i == estimate else 0.0
        features[i] = (log - model.centre[i]) / model.scale[i]
    if len(model.trees.roots) > 0:
        return offset + _trees(model, features)
    if len(model.second) > 0:
        return offset + _network(model, features)
    log = model.weights[len(features)]
    for i in range(len(features)):
        log += model.weights[i] * features[i]
    return offset + log


@compiled(runtime=False)
def _trees(model: ModelArrays, features: NDArray) -> float:
    trees, log = model.trees, model.rate[1]
    for root in trees.roots:
        node = root
        while trees.feature[node] >= 0:
            go_left = np.float32(features[trees.feature[node]]) <= trees.threshold[node]
            node = trees.left[node] if go_left else trees.right[node]
        log += model.rate[0] * trees.value[node]
    return log


@compiled(runtime=False)
def _network(model: ModelArrays, features: NDArray) -> float:
    log, last = model.second[-1], len(features)
    for unit in range(len(model.second) - 1):
        total = model.first[last, unit]
        for i in range(last):
            total += model.first[i, unit] * features[i]
        log += model.second[unit] * max(total, 0.0)
    return log
