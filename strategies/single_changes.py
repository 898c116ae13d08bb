"""All single changes of a candidate, numbered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space


class SingleChanges:
    """The single changes of any candidate of a space, numbered from 0, those of a parameter one after another.

    Attributes:
      starts: `(d + 1,)` the changes of parameter i are `starts[i]` to `starts[i + 1]`, that one excluded.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._last = np.arange(len(space))  # in a permutation its last slot, else the parameter itself
        for group in space.permutations:
            start, stop = space.slots[group]
            self._last[start:stop] = stop - 1
        self._swaps = np.isin(space.groups, sorted(space.permutations)) & (space.groups >= 0)
        counts = np.where(self._swaps, self._last - np.arange(len(space)), space.sizes - 1)
        self.starts = np.concatenate([[0], np.cumsum(counts)])

    def __len__(self) -> int:
        """Return the number of changes."""
        return int(self.starts[-1])

    def rows(self, config: NDArray, changes: NDArray[np.int64]) -> NDArray:
        """Return the `(k, d)` changed candidates, without those that the constraints forbid."""
        columns = np.searchsorted(self.starts, changes, side="right") - 1
        steps = 1 + changes - self.starts[columns]
        rows, k = np.repeat(config[None], len(changes), axis=0), np.arange(len(changes))
        swapped = self._swaps[columns]
        rows[k, columns] = (config[columns] + steps) % self._space.sizes[columns]
        others = columns[swapped] + steps[swapped]
        rows[k[swapped], columns[swapped]], rows[k[swapped], others] = config[others], config[columns[swapped]]
        return rows[self._space.allowed(rows)]

    def of(self, config: NDArray, columns: NDArray[np.int64]) -> NDArray:
        """Return the `(k, d)` candidates with a change of one of some parameters."""
        ranges = [np.arange(self.starts[i], self.starts[i + 1]) for i in columns]
        return self.rows(config, np.concatenate([np.empty(0, np.int64), *ranges]))
