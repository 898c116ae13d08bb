"""All values of all parameters as one flat list: what the policy has preferences for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Kind, Moves, Space

from .policy import VALUES


class ParameterValues:
    """Every value of every parameter that can change.

    A parameter with more than `VALUES` values has `VALUES` bins of adjacent values instead.

    Attributes:
      parameter, bin: `(c,)` the parameter of each value, and its number among the values of that parameter.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        movable = Moves(space).movable
        self._bins = np.zeros(len(space), np.int64)
        self._bins[movable] = np.minimum(space.sizes[movable], VALUES)
        self._first = np.cumsum(self._bins) - self._bins
        self.parameter = np.repeat(np.arange(len(space)), self._bins)
        self.bin = np.arange(len(self.parameter)) - self._first[self.parameter]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.parameter)

    def places(self, columns: NDArray[np.int64], values: NDArray) -> NDArray[np.int64]:
        """Return the places in the list of the given values of the given parameters."""
        return self._first[columns] + values.astype(np.int64) * self._bins[columns] // self._space.sizes[columns]

    def index(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the value at each place; of a bin, its first."""
        columns = self.parameter[places]
        return -(-self.bin[places] * self._space.sizes[columns] // self._bins[columns])

    def state(self, row: NDArray, default: NDArray) -> NDArray[np.float32]:
        """Return `(c, 4)`: 1 for the candidate's value, 1 for the default's; for scales, the step and its length."""
        current, usual = self._is(row), self._is(default)
        scale = self._space.kinds[self.parameter] == Kind.SCALE
        last = np.maximum(self._bins[self.parameter] - 1, 1)
        step = np.where(scale, (self.bin - self.bin[current][self._order]) / last, 0.0)
        return np.column_stack([current, usual, step, np.abs(step)]).astype(np.float32)

    def _is(self, row: NDArray) -> NDArray[np.bool_]:
        """Return `(c,)` booleans: true for the values of the row."""
        columns = np.flatnonzero(self._bins)
        has = np.zeros(len(self), bool)
        has[self.places(columns, row[columns])] = True
        return has

    @property
    def _order(self) -> NDArray[np.int64]:
        """For each value the number of its parameter among those that can change."""
        return (np.cumsum(self._bins > 0) - 1)[self.parameter]
