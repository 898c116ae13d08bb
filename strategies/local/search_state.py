"""The current candidate of the search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .catalogue import Catalogue
from .neighbourhood import Neighbourhood
from .pairs import Pairs


class SearchState:
    """The current candidate with its cost; better candidates of other strategies are adopted between turns.

    Attributes:
      row: `(d,)`.
      cost: its cost, inf until it is measured.
      best: the lowest cost so far.
    """

    def __init__(self, row: NDArray, near: Neighbourhood, catalogue: Catalogue, pairs: Pairs) -> None:
        self.row, self.cost, self.best = row, np.inf, np.inf
        self._near, self._catalogue, self._pairs = near, catalogue, pairs
        self._noted = row, np.inf

    def measure(self, cost: float) -> None:
        """Set the cost of the first row."""
        self.cost = self.best = cost

    def move(self, row: NDArray, cost: float) -> None:
        """Move to a row; all moves of changed parameters, and of those that interact with them, are tried again."""
        changed = np.flatnonzero(row != self.row)
        if len(changed):
            around = self._near.around(changed)
            self._catalogue.wake(around)
            self._pairs.wake(around)
            self.row, self.cost = row, cost
            self.best = min(self.best, cost)

    def note(self, configs: NDArray, costs: NDArray[np.float64]) -> None:
        """Remember the best candidate of other strategies."""
        best = int(np.argmin(costs))
        if costs[best] < self._noted[1]:
            self._noted = configs[best].copy(), float(costs[best])

    def adopt(self) -> None:
        """Move to the best candidate of other strategies, if it is better."""
        if self._noted[1] < self.cost:
            self.move(*self._noted)


def gain(before: float, after: float) -> float:
    """Return the relative decrease of a cost: 1 from inf to finite, -1 from finite to inf, 0 if both are inf."""
    if np.isinf(before) or np.isinf(after):
        return float(np.isinf(before)) - float(np.isinf(after))
    return (before - after) / before if before > 0 else 0.0
