"""A linear model of the cost difference that each change makes, learned from differences to the parent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space


class SparseChanges:
    """The differences of `(n, d)` children from their parent, sparse: one entry per changed parameter, sorted by row.

    Args:
      base: `(d,)` the parent.
      children: `(n, d)`, each different from it.

    Attributes:
      rows, columns: `(m,)` of the changed parameters.
      old, new: `(m,)` values before and after.
      counts: `(n,)` number of changes of each child.
      starts: `(n,)` first entry of each child.
    """

    def __init__(self, base: NDArray, children: NDArray) -> None:
        self.rows, self.columns = np.nonzero(children != base)
        self.old, self.new = base[self.columns].astype(np.int64), children[self.rows, self.columns].astype(np.int64)
        self.counts = np.bincount(self.rows, minlength=len(children))
        self.starts = np.cumsum(self.counts) - self.counts

    def total(self, entries: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` sums of `(m,)` entries over each child's changes."""
        return np.bincount(self.rows, entries, len(self.counts)).astype(np.float64)

    def mean(self, entries: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` means of `(m,)` entries over each child's changes."""
        return self.total(entries) / np.maximum(self.counts, 1)


class Effects:
    """A potential for each value of each parameter; the effect of a change is the difference of two potentials.

    Trained by Kaczmarz' method (1937; normalised least mean squares): the unexplained part of a child's cost difference
    to its parent is divided equally among its changes. So the effect of a single change is exact once it was tried, and
    a step takes time in proportion to the changes: unlike regression, it scales to many thousands of parameters.

    Attributes:
      tries: `(sum of sizes,)` how often each value was tried.
    """

    def __init__(self, space: Space) -> None:
        self._starts = np.cumsum(space.sizes) - space.sizes
        self._potential = np.zeros(int(space.sizes.sum()), np.float32)
        self.tries = np.zeros(len(self._potential), np.int32)

    def places(self, changes: SparseChanges) -> NDArray[np.int64]:
        """Return the `(m,)` places of the new values in `tries`."""
        return self._starts[changes.columns] + changes.new

    def of(self, changes: SparseChanges) -> NDArray[np.float32]:
        """Return what each of the `(m,)` changes adds to the cost difference."""
        old = self._starts[changes.columns] + changes.old
        return self._potential[self.places(changes)] - self._potential[old]

    def learn(self, changes: SparseChanges, differences: NDArray[np.float64]) -> None:
        """Learn the `(n,)` cost differences of children to their parent; a value that several set gets the mean."""
        unexplained = (differences - changes.total(self.of(changes))) / np.maximum(changes.counts, 1)
        places, inverse = np.unique(self.places(changes), return_inverse=True)
        times = np.bincount(inverse, minlength=len(places))
        self._potential[places] += np.bincount(inverse, unexplained[changes.rows], len(places)) / np.maximum(times, 1)
        self.tries[places] += times.astype(np.int32)
