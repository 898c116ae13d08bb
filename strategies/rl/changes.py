"""Single changes of a candidate: a flat list of them, and candidates that make some of them at once."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Moves, Space

from .policy import VALUES
from .repair import Repair


class Changes:
    """Every change of one parameter to one value.

    A parameter of more than `VALUES` values has as many bins of adjacent values instead; within a bin each value is
    equally likely.

    Attributes:
      parameter, bin: `(c,)` of each change.
      low, high: `(c,)` the first value of its bin and the one after the last.
      prior: `(c,)` logarithm of its chance if all movable parameters are equally likely, and all their values.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        movable = Moves(space).movable
        self._movable = len(movable)
        sizes = space.sizes[movable]
        bins = np.minimum(sizes, VALUES)
        self.parameter = np.repeat(movable, bins)
        self.bin = np.arange(bins.sum()) - np.repeat(np.cumsum(bins) - bins, bins)
        size, bins = np.repeat(sizes, bins), np.repeat(bins, bins)
        self.low, self.high = self.bin * size // bins, (self.bin + 1) * size // bins
        self.prior = np.log((self.high - self.low) / (size - 1) / max(1, len(movable)))
        self._repair = Repair(space)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.parameter)

    def alive(self, row: NDArray) -> NDArray[np.bool_]:
        """Return `(c,)` booleans: does the change alter this candidate?"""
        return (self.high - self.low > 1) | (row[self.parameter] != self.low)

    def state(self, row: NDArray, default: NDArray) -> NDArray[np.float32]:
        """Return `(c, 4)`: is it back to the default, is it away from it, and for a scale the step and its length."""
        size, old = self._space.sizes[self.parameter], row[self.parameter]
        back = (default[self.parameter] >= self.low) & (default[self.parameter] < self.high)
        away = ~back & (old == default[self.parameter])
        scale = self._space.kinds[self.parameter] == Kind.SCALE
        step = np.where(scale, ((self.low + self.high - 1) / 2 - old) / (size - 1), 0.0)
        return np.column_stack([back, away, step, np.abs(step)]).astype(np.float32)

    def draw(
        self, row: NDArray, n: int, chances: NDArray[np.float64], tail: float, rng: Generator
    ) -> tuple[NDArray, NDArray[np.int64], NDArray[np.int64]]:
        """Return `n` allowed candidates near an allowed one, and which row makes which change.

        Args:
          row: `(d,)`.
          chances: `(c,)` of the changes that alter `row`.
          tail: a candidate makes k changes or more with probability `k ** -tail`, up to half of the parameters.
        """
        most = max(1, self._movable // 2)
        counts = np.minimum((1 - rng.random(n)) ** (-1 / tail), most).astype(np.int64)
        rows = np.repeat(np.arange(n), counts)
        total = np.cumsum(chances)
        drawn = np.minimum(np.searchsorted(total, rng.random(len(rows)) * total[-1], side="right"), len(self) - 1)
        keys = rows * len(self._space) + self.parameter[drawn]
        _, first = np.unique(keys, return_index=True)  # of two changes of a parameter the first one counts
        rows, drawn = rows[first], drawn[first]
        children = np.repeat(row[None], n, axis=0)
        self._repair.apply(children, rows, self.parameter[drawn], self._values(row, drawn, rng), rng)
        return children, rows, drawn

    def _values(self, row: NDArray, drawn: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
        low, width = self.low[drawn], (self.high - self.low)[drawn]
        values = low + (rng.random(len(drawn)) * width).astype(np.int64)
        same = values == row[self.parameter[drawn]]  # in a bin of several values
        return np.where(same, low + (values - low + 1) % width, values)
