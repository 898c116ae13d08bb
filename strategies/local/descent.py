"""Descent: improvements are taken, several at once if they do not interact, until none is left nearby."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space

from .catalogue import Catalogue
from .neighbourhood import Neighbourhood

Costs = NDArray[np.float64]
Asking = Generator[NDArray, Costs, None]
"""A part of the search: it yields rows to evaluate and is sent their costs."""
Moving = Generator[NDArray, Costs, tuple[NDArray, float]]
"""As `Asking`, but it also returns a row and its cost."""

_MOST_ROUNDS, _MOST_TRIALS = 3, 32


class Descent:
    """Descent from a row, by given changes or by single changes around what has changed."""

    def __init__(self, space: Space, near: Neighbourhood, catalogue: Catalogue, rng: np.random.Generator) -> None:
        self._space, self._near, self._catalogue, self._rng = space, near, catalogue, rng

    def merge(self, state: NDArray, rows: NDArray) -> NDArray:
        """Return the `(d,)` state with the changes of `(k, d)` rows, except those that interact with an earlier one.

        If the constraints forbid the result, only the first change is made.
        """
        merged = rows[0].copy()
        touched = np.zeros(len(state), bool)
        touched[self._near.around(np.flatnonzero(merged != state))] = True
        for row in rows[1:]:
            columns = np.flatnonzero(row != state)
            if not touched[columns].any():
                merged[columns] = row[columns]
                touched[self._near.around(columns)] = True
        return merged if self._space.allowed(merged[None])[0] else rows[0].copy()

    def improve(self, row: NDArray, cost: float, rows: NDArray, costs: Costs) -> Moving:
        """Return the row with all improvements among `(k, d)` rows, or with the best alone if that is better."""
        good = np.flatnonzero(costs < cost)
        good = good[np.argsort(costs[good], kind="stable")]
        if not len(good):
            return row, cost
        best, least = rows[good[0]].copy(), float(costs[good[0]])
        merged = self.merge(row, rows[good])
        if (merged != best).any():
            together = float((yield merged[None])[0])
            if together < least:
                return merged, together
        return best, least

    def repair(self, row: NDArray, cost: float, columns: NDArray[np.int64]) -> Moving:
        """Improve a row by single changes around what has changed, until none helps."""
        for _ in range(_MOST_ROUNDS):
            trials = self._catalogue.singles(row, self._near.around(columns), _MOST_TRIALS, self._rng)
            if not len(trials):
                break
            better, least = yield from self.improve(row, cost, trials, (yield trials))
            columns = np.flatnonzero(better != row)
            row, cost = better, least
            if not len(columns):
                break
        return row, cost
