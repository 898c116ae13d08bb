"""Prices for a capacity at each time, which rise where candidates use too much."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.core.task import Capacity

_RATE = 0.3
"""How fast prices follow a candidate."""
_TIMES = 20.0
"""A value pays the prices of all times at which it lives; if more times than these change much, each changes less."""
_MEMORY = 0.8
"""How much of past subgradients counts."""


class Prices:
    """What the use of a capacity costs at each time; nothing if there is no capacity.

    Args:
      capacity: the limit.
      sizes: `(d,)` the number of values of each node.
    """

    def __init__(self, capacity: Capacity | None, sizes: NDArray[np.int64]) -> None:
        self._capacity, self._sizes = capacity, sizes
        self._prices = np.zeros(0 if capacity is None else int(capacity.ends.max()) + 1)
        self._slope = np.zeros(len(self._prices))

    def of_values(self) -> NDArray[np.float64]:
        """Return what each value of each node pays."""
        capacity = self._capacity
        if capacity is None:
            return np.zeros(int(self._sizes.sum()))
        sums = np.concatenate([[0.0], np.cumsum(self._prices)])
        lives = sums[np.maximum(capacity.begins, capacity.ends)] - sums[capacity.begins]
        return np.repeat(lives, self._sizes) * capacity.usages

    def of_limit(self) -> float:
        """Return what a candidate pays that uses the whole capacity."""
        return 0.0 if self._capacity is None else float(self._prices.sum()) * self._capacity.limit

    def fits(self, config: NDArray[np.int64]) -> bool:
        """Return whether a `(d,)` candidate keeps the capacity."""
        return self._capacity is None or used(self._capacity, config).max() <= self._capacity.limit

    def forget(self) -> None:
        """Begin a new ascent: past subgradients no longer count."""
        self._slope[:] = 0

    def ascend(self, config: NDArray[np.int64], gap: float) -> None:
        """Move the prices along the subgradient of a candidate that is least at the prices of now.

        Args:
          config: the `(d,)` candidate.
          gap: how much the bound may still rise, times the length of the step.
        """
        if self._capacity is not None:
            self._slope = _MEMORY * self._slope + (1 - _MEMORY) * self._over(config)
            slope = np.where((self._prices > 0) | (self._slope > 0), self._slope, 0)
            length = max(1e-12, float(slope @ slope))
            self._prices = np.maximum(0, self._prices + gap / length / self._capacity.limit * slope)

    def follow(self, config: NDArray[np.int64], cost: float) -> None:
        """Let the prices follow a candidate, in proportion to a cost."""
        if self._capacity is not None:
            over = self._over(config)
            change = np.where((over > 0) | (self._prices > 0), np.clip(over, -1, 1), 0)
            step = _RATE * max(1.0, cost) / self._capacity.limit
            self._prices = np.maximum(0, self._prices + step * change / max(1.0, np.abs(change).sum() / _TIMES))

    def _over(self, config: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return by which share of the limit a candidate is above it at each time."""
        assert self._capacity is not None
        return used(self._capacity, config) / self._capacity.limit - 1


def used(capacity: Capacity, config: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what a `(d,)` candidate uses at each time, and one more."""
    change, lives = np.zeros(int(capacity.ends.max()) + 1, np.int64), capacity.begins < capacity.ends
    usages = capacity.usages[capacity.firsts[:-1] + config]
    np.add.at(change, capacity.begins[lives], usages[lives])
    np.add.at(change, capacity.ends[lives], -usages[lives])
    return np.cumsum(change)
