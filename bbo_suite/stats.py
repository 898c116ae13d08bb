"""Statistics of runs: arrays in, arrays out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def best_so_far(values: ArrayLike) -> NDArray[np.float64]:
    """Return the `(..., n)` running minimum of costs along the last axis."""
    return np.minimum.accumulate(np.asarray(values, np.float64), axis=-1)


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of `(n,)` independent numbers and the bounds of its confidence interval (Student's t).

    One number has no interval: both bounds are nan.
    """
    from scipy.stats import t

    numbers = np.asarray(values, np.float64)
    mean = float(numbers.mean())
    if len(numbers) < 2:
        return mean, np.nan, np.nan
    half = t.ppf((1 + confidence) / 2, len(numbers) - 1) * numbers.std(ddof=1) / np.sqrt(len(numbers))
    return mean, mean - float(half), mean + float(half)


def quartiles(values: ArrayLike) -> NDArray[np.float64]:
    """Return `(3, n)`: lower quartile, median and upper quartile over the first axis of `(runs, n)`."""
    return np.quantile(np.asarray(values, np.float64), [0.25, 0.5, 0.75], axis=0)
