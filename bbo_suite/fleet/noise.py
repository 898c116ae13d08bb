"""Noise of measurements that depends only on what is measured: not on the order, and not on the process."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_STEP, _FIRST, _SECOND = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def mixed(*columns: NDArray[np.uint64] | int) -> NDArray[np.uint64]:
    """Return digests of rows whose columns are given, by the finaliser of SplitMix64 (Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        found: Any = np.uint64(0)
        for column in columns:
            found = (found ^ np.asarray(column, np.uint64)) + _STEP
            found = (found ^ (found >> np.uint64(30))) * _FIRST
            found = (found ^ (found >> np.uint64(27))) * _SECOND
            found = found ^ (found >> np.uint64(31))
    return np.asarray(found)


def digests(settings: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the `(n,)` digests of `(n, w)` settings."""
    return mixed(*np.ascontiguousarray(settings.T, np.float64).view(np.uint64))


def normal(keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return a standard normal number for each key (Box and Muller 1958)."""
    first, second = ((mixed(keys, turn) >> np.uint64(11)).astype(np.float64) / 2.0**53 for turn in (1, 2))
    return np.sqrt(-2 * np.log(1 - first)) * np.cos(2 * np.pi * second)
