"""The candidate that a search stands on, and how a round moves it."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Space


class Incumbent:
    """The best candidate, or one that costs the same; until its cost is known it waits in `proposal`.

    Attributes:
      row, cost: `(d,)` what the candidates of a round are changes of, and its cost.
      proposal: a candidate that the next round measures besides: at first the default, later a merger.
    """

    def __init__(self, space: Space, row: NDArray) -> None:
        self._space = space
        self.row: NDArray = row.astype(space.dtype)
        self.cost = np.inf
        self.proposal: NDArray | None = self.row

    def advance(self, configs: NDArray, values: NDArray[np.float64], rng: Generator) -> NDArray[np.int64]:
        """Move to the best of a round's candidates and return the parameters that this changes.

        Among equals the search wanders, which keeps it in motion on plateaus. What other candidates gained by changes
        of other parameters is merged into a proposal, to be measured in the next round.
        """
        before = self.row
        better = np.argsort(values, kind="stable")
        better = better[values[better] < self.cost]
        self.proposal = None
        if len(better):
            self.row, self.cost = configs[better[0]].copy(), float(values[better[0]])
            self._merge(before, configs[better[1:]])
        else:
            equal = np.flatnonzero(values == self.cost)
            self.row = configs[rng.choice(equal)].copy() if len(equal) else before
        return np.flatnonzero(self.row != before)

    def _merge(self, base: NDArray, configs: NDArray) -> None:
        """Join the changes of better candidates, the best first, as long as they touch other parameters."""
        merged, touched = self.row.copy(), self.row != base
        for config in configs:
            changed = config != base
            if not (changed & touched).any():
                merged[changed] = config[changed]
                touched |= changed
        if (merged != self.row).any() and self._space.allowed(merged[None])[0]:
            self.proposal = merged
