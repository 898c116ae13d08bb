"""A Gaussian process of whole candidates, and the search that maximises the expected improvement on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Moves, Space

from ..changes import SingleChanges
from ..regressors import best_and_last

_PARAMETERS, _VALUES = 20, 2_000

FEWEST = 10
"""The smallest number of candidates to which the process is fitted."""

_ROWS, _FITTED = 400, 200  # rows that predict, and rows by which the weights are chosen
_GROWTH, _STEPS = 1.3, 10
_PRIOR_NOISE, _JITTER = -5.0, 1e-6
_INCUMBENTS, _CHANGES, _OTHERS, _BEST = 5, 400, 200, 40
_TWICE = 0.3  # share of two changes instead of one
_SINGLE = 400  # the most single changes of the best candidate that are considered at a time
_EXAMINED = 100  # candidates with the largest expected improvement, of which a batch is chosen one by one


def is_narrow(space: Space) -> bool:
    """Return true if whole candidates are modelled: at most 20 parameters vary, choices or scales of 2,000 values."""
    varying = space.sizes > 1
    few = varying.sum() <= _PARAMETERS and space.sizes[varying].sum() <= _VALUES
    return bool(few and varying.any() and not (space.kinds == Kind.SLOT).any())


class Process:
    """A Gaussian process of costs, whose weights say how much each parameter matters (Rasmussen and Williams 2006).

    The covariance of two candidates is exp(-sum of weight times distance): of ordered values the distance is that of
    their places, as a share of the largest; of others it is 1 if they differ. The weights maximise the likelihood.

    These distances are squared ones between vectors of steps, one for each value: an ordered value has taken all steps
    up to its own, another value only its own. So all covariances come from one product of matrices.

    Args:
      space: of the candidates.
    """

    def __init__(self, space: Space) -> None:
        self._columns = np.flatnonzero(space.sizes > 1)
        sizes, ordered = space.sizes[self._columns], (space.kinds == Kind.SCALE)[self._columns]
        self._owners = np.repeat(np.arange(len(sizes)), sizes)
        self._values = np.concatenate([np.arange(size) for size in sizes]).astype(space.dtype)
        self._ordered = ordered[self._owners]
        lengths = np.where(ordered, 1 / np.maximum(sizes - 1, 1), 0.5)
        self._lengths = lengths[self._owners]
        self._logs = np.append(np.zeros(len(sizes)), _PRIOR_NOISE + 1)  # of the weights, and of the noise
        self._due = 0.0

    def fit(self, configs: NDArray, targets: NDArray[np.float64]) -> None:
        """Learn from `(n, d)` candidates and their `(n,)` targets; small is good."""
        self._mean = targets.mean()
        y = targets - self._mean
        if len(y) >= self._due:
            self._due = _GROWTH * len(y)
            self._choose_weights(configs, y)
        x = self._steps(configs).astype(np.float64)
        noise = np.exp(self._logs[-1]) + _JITTER
        root, solved, self._scale = _solved(_covariances(x, x) + noise * np.eye(len(y)), y)
        self._x, self._root, self._solved = (part.astype(np.float32) for part in (x, root, solved))

    def means(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` expected targets of candidates."""
        return _covariances(self._steps(configs), self._x) @ self._solved + self._mean

    def predict(self, configs: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the `(n,)` expected targets, their variances, and what `covariances` needs."""
        from scipy.linalg import solve_triangular

        known = _covariances(self._steps(configs), self._x)
        explained = solve_triangular(self._root, known.T, lower=True, check_finite=False)
        variances = self._scale * np.maximum(1 - (explained**2).sum(axis=0), _JITTER)
        return known @ self._solved + self._mean, variances, explained

    def covariances(self, configs: NDArray, explained: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `(n, n)` covariances of the targets of candidates, given what is known."""
        steps = self._steps(configs)
        return self._scale * (_covariances(steps, steps) - explained.T @ explained)

    def _steps(self, configs: NDArray) -> NDArray[np.float32]:
        """Return the `(n, sum of sizes)` steps of candidates, each as long as the root of its weight."""
        weights = np.exp(self._logs[:-1])[self._owners] * self._lengths
        return self._taken(configs) * np.sqrt(weights).astype(np.float32)

    def _taken(self, configs: NDArray) -> NDArray[np.bool_]:
        own = configs[:, self._columns[self._owners]]
        return np.where(self._ordered, own >= self._values, own == self._values)

    def _choose_weights(self, configs: NDArray, y: NDArray[np.float64]) -> None:
        from scipy.optimize import minimize

        rows = best_and_last(y, _FITTED) if len(y) > _FITTED else np.arange(len(y))
        steps = self._taken(configs[rows]) * np.sqrt(self._lengths)
        parts = [steps[:, self._owners == j] for j in range(len(self._columns))]
        apart = np.stack([_distances(part, part).ravel() for part in parts])
        bounds = [(-6.0, 4.0)] * len(parts) + [(-10.0, 0.0)]
        found: Any = minimize(
            _loss, self._logs, (apart, y[rows]), "L-BFGS-B", True, bounds=bounds, options={"maxiter": _STEPS}
        )
        self._logs = found.x


def _covariances(a: NDArray, b: NDArray) -> NDArray:
    return np.exp(-_distances(a, b))


def _distances(a: NDArray, b: NDArray) -> NDArray:
    """Return the `(n, m)` squared distances between two sets of vectors."""
    return np.maximum((a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T), 0)


def _solved(covariances: NDArray, y: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return the Cholesky root of covariances, their inverse times `y`, and the variance that is most likely."""
    from scipy.linalg import cho_solve

    root = np.linalg.cholesky(covariances.astype(np.float64))
    solved = cho_solve((root, True), y, check_finite=False)
    return root, solved, max(float(y @ solved) / len(y), 1e-12)


def _loss(logs: NDArray, apart: NDArray, y: NDArray) -> tuple[float, NDArray[np.float64]]:
    """Return the negative logarithm of the posterior and its gradient (Rasmussen and Williams 2006, equation 5.9).

    Args:
      logs: `(k + 1,)` of the weights and of the noise, with wide normal priors.
      apart: `(k, n * n)` distances.
      y: `(n,)` targets without their mean.
    """
    from scipy.linalg import cho_solve

    n, weights, noise = len(y), np.exp(logs[:-1]), np.exp(logs[-1])
    prior = (logs - np.append(np.zeros(len(weights)), _PRIOR_NOISE)) / 2
    free = np.exp(-(weights @ apart)).reshape(n, n)
    root, solved, scale = _solved(free + (noise + _JITTER) * np.eye(n), y)
    slope = (cho_solve((root, True), np.eye(n), check_finite=False) - np.outer(solved, solved) / scale) / 2
    gradient = np.append(-(apart @ (slope * free).ravel()) * weights, np.trace(slope) * noise)
    value = n * np.log(scale) / 2 + np.log(np.diag(root)).sum() + (prior**2).sum() / 2
    return float(value), gradient + prior / 2


class Whole:
    """Proposes whole candidates: changes and crosses of the best that are known, and random ones.

    Args:
      space: of the candidates.
      moves: change and cross candidates.
      rng: draws them.
    """

    def __init__(self, space: Space, moves: Moves, rng: Generator) -> None:
        self._space, self._moves, self._rng = space, moves, rng
        self._process, self._singles = Process(space), SingleChanges(space)
        self._configs, self._values = np.zeros((0, len(space)), space.dtype), np.zeros(0)

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Add `(k, d)` candidates and their `(k,)` costs; of many, the best and the last are kept."""
        self._configs, self._values = np.concatenate([self._configs, configs]), np.append(self._values, values)
        if len(self._values) > _ROWS:
            kept = best_and_last(self._values, _ROWS)
            self._configs, self._values = self._configs[kept], self._values[kept]

    @property
    def ready(self) -> bool:
        """True if enough is known to propose candidates."""
        return len(self._values) >= FEWEST and bool(targets(self._values).any())

    def propose(self, n: int, fresh: Callable[[NDArray], NDArray]) -> NDArray:
        """Return up to `n` candidates, `(k, d)`, among those that `fresh` leaves of others.

        They are chosen one by one, each with the largest expected improvement if those before cost what is expected.
        """
        y = targets(self._values)
        self._process.fit(self._configs, y)
        pool = self._pool()
        pool = fresh(pool[self._space.allowed(pool)])
        if not len(pool):
            return pool
        means, variances, explained = self._process.predict(pool)
        first = np.argsort(-expected_improvement(y.min() - means, np.sqrt(variances)), kind="stable")[:_EXAMINED]
        covariances = self._process.covariances(pool[first], explained[:, first])
        return pool[first][self._chosen(means[first], covariances, y.min(), min(n, len(first)))]

    def _chosen(self, means: NDArray, covariances: NDArray, best: float, n: int) -> list[int]:
        chosen: list[int] = []
        for _ in range(n):
            spread = np.sqrt(np.maximum(np.diag(covariances), 1e-12))
            gains = expected_improvement(best - means, spread)
            gains[chosen] = -1
            chosen.append(int(np.argmax(gains)))
            best = min(best, means[chosen[-1]])
            column = covariances[chosen[-1]]
            covariances = covariances - np.outer(column, column) / (column[chosen[-1]] + 1e-9)
        return chosen

    def _pool(self) -> NDArray:
        """Return changes of the best candidates, random ones, and children of those of all that the model likes."""
        best = self._configs[np.argsort(self._values, kind="stable")[:_INCUMBENTS]]
        parents = best[self._rng.integers(0, len(best), _CHANGES)]
        changed = self._moves.mutate(parents, 1 + (self._rng.random(_CHANGES) < _TWICE), self._rng)
        singles = self._singles.rows(best[0], self._rng.permutation(len(self._singles))[:_SINGLE])
        pool = np.concatenate([singles, changed, self._space.sample(_OTHERS, self._rng)])
        liked = pool[np.argsort(self._process.means(pool), kind="stable")[:_BEST]]
        mothers, fathers = liked[self._rng.integers(0, len(liked), (2, _OTHERS))]
        half = _OTHERS // 2
        crossed = self._moves.cross(mothers[:half], fathers[:half], self._rng)
        changed = self._moves.mutate(mothers[half:], np.ones(half, np.int64), self._rng)
        return np.concatenate([pool, crossed, changed])


def targets(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `(n,)` standardised targets of costs; all zeros if nothing distinguishes them.

    Costs that are all positive are taken as logarithms. What failed counts as the worst that ran. How bad the worse
    half is does not matter: its targets are at most as far above the median as the best is below.
    """
    runs = np.isfinite(values)
    if not runs.any():
        return np.zeros(len(values))
    scores = np.where(runs, values, values[runs].max())
    largest = np.abs(scores).max()
    scores = np.log(scores) if scores.min() > 0 else scores / (largest or 1.0)
    better = np.median(scores) - scores.min()
    if better > 0:
        scores = np.minimum(scores, np.median(scores) + better)
    spread = scores.std()
    return (scores - scores.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))


def expected_improvement(better: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of normal distributions cut off at zero (Jones et al. 1998, equation 15)."""
    from scipy.special import ndtr

    scaled = better / np.maximum(spread, 1e-12)
    return better * ndtr(scaled) + spread * np.exp(-(scaled**2) / 2) / np.sqrt(2 * np.pi)
