"""Runs as curves: the best cost so far at each evaluation, and its gain."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST_GAIN = 1e-4
"""Smallest best gain of which shares are computed: below it, noise would make one strategy 100 % and all others 0 %."""

SMALLEST_GAIN_TEXT = f"{100 * SMALLEST_GAIN:g} %"


def best_so_far(values: ArrayLike) -> NDArray[np.float64]:
    """Return the `(..., n)` running minimum of costs along the last axis."""
    return np.minimum.accumulate(np.asarray(values, np.float64), axis=-1)


def quartiles(values: ArrayLike) -> NDArray[np.float64]:
    """Return `(3, n)`: lower quartile, median and upper quartile over the first axis of `(runs, n)`."""
    return np.quantile(np.asarray(values, np.float64), [0.25, 0.5, 0.75], axis=0)


def area_under(values: ArrayLike, length: int) -> NDArray[np.float64]:
    """Return the mean over `length` evaluations of `(..., n)` curves, holding the last value of shorter ones.

    The normalised area under the curve (any-time performance); for speedups, higher is better.

    Raises:
      ValueError: a curve has no value, or more than `length`.
    """
    curves = np.asarray(values, np.float64)
    n = curves.shape[-1]
    if not 1 <= n <= length:
        raise ValueError(f"curves of {n} evaluations do not fit into {length}")
    return (curves.sum(axis=-1) + (length - n) * curves[..., -1]) / length


def fraction_of_optimum(costs: ArrayLike, optimum: float) -> NDArray[np.float64]:
    """Return optimum / cost, elementwise: 1 where the optimum was found, 0 where every candidate failed (cost inf).

    For an optimum of 0 the fraction is 1 where it was found, else 0.
    """
    values = np.asarray(costs, np.float64)
    if optimum == 0:
        return (values == 0).astype(float)
    return optimum / values
