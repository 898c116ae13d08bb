"""Makes changes of candidates so that they stay allowed."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Space
from bbo_suite.constraint import Component

_TRIES = 64


class Repair:
    """Sets parameters to values; what a permutation or a constraint forbids is mended around the change.

    In a permutation the slot that held the value takes the old one. Tied parameters take the row of their table with
    the new value that is nearest, of a few rows drawn at random.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._span = np.full((len(space), 2), -1)
        for start, stop in space.free_permutations:
            self._span[start:stop] = start, stop

    def apply(self, children: NDArray, rows: NDArray, columns: NDArray, values: NDArray, rng: Generator) -> None:
        """Set `children[rows[k], columns[k]]` to `values[k]`, in place; `(row, column)` pairs are distinct."""
        free = self._span[columns, 0] < 0
        children[rows[free], columns[free]] = values[free]
        rows, columns, values = rows[~free], columns[~free], values[~free]
        while len(rows):  # swaps of one permutation build on each other: one a row at a time
            _, first = np.unique(rows, return_index=True)
            self._swap(children, rows[first], columns[first], values[first])
            rows, columns, values = (np.delete(array, first) for array in (rows, columns, values))
        for component in self._space.components:
            broken = np.flatnonzero(~component.allows(children))
            children[np.ix_(broken, component.columns)] = _nearest(children[broken], component, rng)

    def _swap(self, children: NDArray, rows: NDArray, columns: NDArray, values: NDArray) -> None:
        for start, stop in np.unique(self._span[columns], axis=0):
            here = self._span[columns, 0] == start
            r, c = rows[here], columns[here]
            other = start + (children[r, start:stop] == values[here][:, None]).argmax(axis=1)
            children[r, other], children[r, c] = children[r, c], values[here]


def _nearest(broken: NDArray, component: Component, rng: Generator) -> NDArray:
    """Return for each row the allowed one, of some drawn at random, that differs in the fewest parameters."""
    drawn = component.rows[rng.integers(0, len(component.rows), (len(broken), _TRIES))]
    apart = (drawn != broken[:, None, component.columns]).sum(axis=2)
    return drawn[np.arange(len(broken)), apart.argmin(axis=1)]
