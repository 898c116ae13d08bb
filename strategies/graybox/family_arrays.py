"""What the measured parts at alike places say of another part there: a Gaussian process in compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

compiled = compiled_for(__file__)


class FamilyArrays(NamedTuple):
    """Gaussian processes of the residuals of g families with q points in all, each with a Matern kernel of order 3/2.

    Attributes:
      of: `(p,)` the family of each place.
      starts: `(g + 1,)` the points of family i are `starts[i]:starts[i + 1]` of the other arrays.
      points: `(q, f)` scaled features.
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
def correct_all(families: FamilyArrays, x: NDArray, of: NDArray, near: NDArray) -> NDArray:
    """Return the `(k,)` residuals of parts with `(k, f)` standardised features, of `(k,)` families."""
    residuals, told = np.zeros(len(x)), np.zeros(3)
    for i in range(len(x)):
        correct(families, of[i], x[i], near, told)
        residuals[i] = told[0]
    return residuals


@compiled(runtime=False)
def correct(families: FamilyArrays, family: int, x: NDArray, near: NDArray, told: NDArray) -> None:
    """Write the residual, its variance and the chance to fail of a part with `(f,)` standardised features to `told`.

    `near` is room for the kernel values of a family.
    """
    first, n = families.starts[family], families.starts[family + 1] - families.starts[family]
    told[0], told[1], told[2] = 0.0, 1.0, families.rate[0]
    for i in range(n):
        near[i] = _matern(families.points[first + i], x, families.scale)
        told[0] += near[i] * families.weights[first + i]
        told[2] += near[i] * families.failures[first + i]
    block = families.blocks[family]
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += families.inverses[block + i * n + j] * near[j]
        told[1] -= total * near[i]
    told[1] = max(told[1], 0.0) * families.signals[family]


@compiled(runtime=False)
def _matern(point: NDArray, x: NDArray, scale: NDArray) -> float:
    total = 0.0
    for i in range(len(x)):
        gap = (x[i] - point[i]) * scale[i]
        total += gap * gap
    distance = (3.0 * total) ** 0.5
    return (1.0 + distance) * np.exp(-distance)


@compiled()
def solve(families: FamilyArrays, residuals: NDArray, failed: NDArray, nuggets: NDArray, noise: float) -> float:
    """Fill the weights, inverses and signals of families with points; return the mean squared error left out.

    Args:
      residuals: `(q,)` of log costs, of those that did not fail.
      failed: `(q,)` 1 for a part that failed, else 0.
      nuggets: `(q,)` variance of a measurement, in terms of the signal.
      noise: the variance of residuals that is expected before any is known.
    """
    errors, count = 0.0, 0
    for family in range(len(families.starts) - 1):
        first, last = families.starts[family], families.starts[family + 1]
        n, block = last - first, families.blocks[family]
        if n == 0:
            families.signals[family] = noise
            continue
        inverse = families.inverses[block : block + n * n].reshape(n, n)
        for i in range(n):
            for j in range(n):
                inverse[i, j] = _matern(families.points[first + i], families.points[first + j], families.scale)
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
    found = np.empty(len(families.points))
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
