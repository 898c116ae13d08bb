"""A regressor of the log cost of parts, chosen by its score, in a form that compiled code evaluates.

Its predictions are corrected by the parts that were measured at alike places.
"""

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
        return self._empty(np.zeros((width, 0)), np.zeros(0, np.int64), np.zeros(width))

    def _empty(self, x: NDArray[np.float64], families: NDArray[np.int64], scale: NDArray[np.float64]) -> FamilyArrays:
        counts = np.bincount(families, minlength=int(self._of.max(initial=0)) + 1)
        starts, blocks = (np.concatenate([[0], np.cumsum(n)]).astype(np.int64) for n in (counts, counts**2))
        weights, failures = np.zeros(len(families)), np.zeros(len(families))
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
          order: `(m,)` log costs; of a large family, the cheapest parts are used.
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
        self.arrays = self._empty(np.ascontiguousarray(x.T), families, scale)
        self.arrays.rate[0] = failed.mean()
        return solve(self.arrays, residuals, failed, nuggets + _NUGGET, max(noise, 1e-12))

    def left_out(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return by how much the `(q,)` residuals differ from what the others predict, and the variances of that."""
        arrays, diagonal = self.arrays, diagonals(self.arrays)
        return arrays.weights / diagonal, np.repeat(arrays.signals, np.diff(arrays.starts)) / diagonal

    def predict(self, x: NDArray[np.float64], families: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the `(k,)` residuals of parts with `(k, f)` standardised features."""
        return correct_all(self.arrays, np.ascontiguousarray(x), families, np.zeros(2 * LARGEST))


class FamilyArrays(NamedTuple):
    """Gaussian processes of the residuals of g families with q points in all, each with a Matern kernel of order 3/2.

    Attributes:
      of: `(p,)` the family of each place.
      starts: `(g + 1,)` the points of family i are `starts[i]:starts[i + 1]` of the other arrays.
      points: `(f, q)` standardised features.
      weights, failures: `(q,)` of the kernel values, which add up to the residual of the log cost, and of the chance to
        fail.
      inverses: of the kernel matrices, one after another.
      blocks: `(g + 1,)` where each inverse starts.
      signals: `(g,)` variances of the residuals.
      scale: `(f,)` that features are multiplied by; 0 for those that do not vary within families.
      rate: `(1,)` the share of parts that failed.
    """

    of: NDArray[np.int64]
    starts: NDArray[np.int64]
    points: NDArray[np.float64]
    weights: NDArray[np.float64]
    failures: NDArray[np.float64]
    inverses: NDArray[np.float64]
    blocks: NDArray[np.int64]
    signals: NDArray[np.float64]
    scale: NDArray[np.float64]
    rate: NDArray[np.float64]


@compiled()
def correct_all(families: FamilyArrays, x: NDArray, of: NDArray, kernel: NDArray) -> NDArray:
    """Return the `(k,)` residuals of parts with `(k, f)` standardised features, of `(k,)` families."""
    residuals, correction = np.zeros(len(x)), np.zeros(3)
    for i in range(len(x)):
        correct(families, of[i], x[i], kernel, correction)
        residuals[i] = correction[0]
    return residuals


@compiled(runtime=False)
def correct(families: FamilyArrays, family: int, x: NDArray, kernel: NDArray, correction: NDArray) -> None:
    """Write the residual of a part with `(f,)` standardised features, its variance and the chance to fail.

    They go to `correction`; `kernel` is a buffer for the kernel values of a family.
    """
    first, last, block = families.starts[family], families.starts[family + 1], families.blocks[family]
    n = last - first
    near, far = kernel[:n], kernel[LARGEST : LARGEST + n]
    _kernel(families, first, last, x, near)
    correction[0], correction[1], correction[2] = 0.0, 1.0, families.rate[0]
    far[:] = 0.0
    for j in range(n):
        row, value = families.inverses[block + j * n : block + (j + 1) * n], near[j]
        for i in range(n):  # over the columns of a row, so that it is vectorised
            far[i] += row[i] * value
    for i in range(n):
        correction[0] += near[i] * families.weights[first + i]
        correction[1] -= near[i] * far[i]
        correction[2] += near[i] * families.failures[first + i]
    correction[1] = max(correction[1], 0.0) * families.signals[family]


@compiled(runtime=False)
def _kernel(families: FamilyArrays, first: int, last: int, x: NDArray, values: NDArray) -> None:
    """Write the kernel values of points `first` to `last` and another one."""
    values[:] = 0.0
    for column in range(len(x)):
        scale = families.scale[column]
        if scale == 0.0:
            continue
        points, own = families.points[column, first:last], x[column]
        for i in range(len(values)):
            gap = (own - points[i]) * scale
            values[i] += gap * gap
    for i in range(len(values)):
        distance = (3.0 * values[i]) ** 0.5
        values[i] = (1.0 + distance) * np.exp(-distance)


@compiled()
def solve(families: FamilyArrays, residuals: NDArray, failed: NDArray, nuggets: NDArray, noise: float) -> float:
    """Fill the weights, inverses and signals of families with points; return the mean squared error left out.

    Args:
      residuals: `(q,)` of log costs, of those that did not fail.
      failed: `(q,)` 1 for a part that failed, else 0.
      nuggets: `(q,)` variance of a measurement, in terms of the signal.
      noise: the variance of residuals that is expected before any is known.
    """
    errors, count, point = 0.0, 0, np.empty(len(families.points))
    for family in range(len(families.starts) - 1):
        first, last = families.starts[family], families.starts[family + 1]
        n, block = last - first, families.blocks[family]
        if n == 0:
            families.signals[family] = noise
            continue
        inverse = families.inverses[block : block + n * n].reshape(n, n)
        for i in range(n):
            point[:] = families.points[:, first + i]
            _kernel(families, first, last, point, inverse[i])
            inverse[i, i] += nuggets[first + i]
        _invert(inverse)
        families.weights[first:last] = inverse @ residuals[first:last]
        families.failures[first:last] = inverse @ (failed[first:last] - families.rate[0])
        fit = 0.0
        for i in range(first, last):
            fit += residuals[i] * families.weights[i]
            errors += (families.weights[i] / inverse[i - first, i - first]) ** 2 if n > 1 else 0.0
        count += n if n > 1 else 0
        families.signals[family] = (_PRIOR * noise + fit) / (_PRIOR + n)
    return errors / max(1, count)


@compiled()
def diagonals(families: FamilyArrays) -> NDArray:
    """Return the `(q,)` diagonals of the inverses."""
    found = np.empty(len(families.weights))
    for family in range(len(families.starts) - 1):
        first, n = families.starts[family], families.starts[family + 1] - families.starts[family]
        for i in range(n):
            found[first + i] = families.inverses[families.blocks[family] + i * n + i]
    return found


_PRIOR = 4.0
"""The weight of the expected variance, in points."""


@compiled()
def _invert(matrix: NDArray) -> None:
    """Replace a positive definite matrix by its inverse (Gauss and Jordan)."""
    n = len(matrix)
    for k in range(n):
        pivot = 1.0 / matrix[k, k]
        matrix[k, k] = 1.0
        for j in range(n):
            matrix[k, j] *= pivot
        for i in range(n):
            if i != k:
                factor = matrix[i, k]
                matrix[i, k] = 0.0
                for j in range(n):
                    matrix[i, j] -= factor * matrix[k, j]
