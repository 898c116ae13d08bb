"""Steps along parameters: the index of each goes up, down or stays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Moves, Space


class Steps:
    """Steps of the parameters that can change alone; those of permutations stay. Choices are stepped by index, too.

    Attributes:
      columns: `(m,)` the parameters that are stepped.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        movable = Moves(space).movable
        permuted = np.isin(space.groups, sorted(space.permutations)) & (space.groups >= 0)
        self.columns: NDArray[np.int64] = movable[~permuted[movable]]
        self._most = np.maximum(space.sizes - 1, 1)

    def scaled(self, configs: NDArray) -> NDArray[np.float32]:
        """Return `(n, d)` indices as numbers in [0, 1]."""
        return (configs / self._most).astype(np.float32)

    def taken(self, configs: NDArray, directions: NDArray) -> NDArray:
        """Return `(n, d)` candidates after `(n, m)` steps of -1, 0 or 1; a step beyond the ends is not taken.

        Of parameters that a constraint ties together, no step is taken if it forbids the result.
        """
        moved = configs.copy()
        stepped = configs[:, self.columns].astype(np.int64) + directions
        moved[:, self.columns] = np.clip(stepped, 0, self._space.sizes[self.columns] - 1)
        for component in self._space.components:
            rows = np.flatnonzero(~component.allows(moved))
            moved[np.ix_(rows, component.columns)] = configs[np.ix_(rows, component.columns)]
        return moved
