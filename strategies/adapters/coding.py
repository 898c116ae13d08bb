"""Translates between the candidates of a space and the free indices that a library optimizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Moves, Space
from bbo_suite.core.constraint import Component


class Coding:
    """Converts independent indices to allowed candidates.

    Libraries optimize products of independent parameters. Parameters that cannot change are left out. The indices of
    a permutation are read as sort keys: each slot takes the rank of its key, so a permutation decodes to itself. Values
    that a constraint forbids are replaced by the row of its table that differs in the fewest parameters; of several
    such rows, by the one with the smallest differences of indices. The library is told the cost of the replacement.

    Attributes:
      sizes: `(w,)` number of values of each free parameter.
      kinds: `(w,)` the `Kind` of each free parameter.
      default: `(w,)` indices of the default.
    """

    def __init__(self, space: Space, default: NDArray) -> None:
        self._space, self._base = space, default.astype(space.dtype)
        self._columns = Moves(space).movable
        self.sizes, self.kinds = space.sizes[self._columns], space.kinds[self._columns]
        self.default = default[self._columns].astype(np.int64)

    def decode(self, indices: NDArray) -> NDArray:
        """Return the `(n, d)` allowed candidates of `(n, w)` indices; indices out of range are clipped."""
        configs = np.repeat(self._base[None], len(indices), axis=0)
        configs[:, self._columns] = np.clip(indices, 0, self.sizes - 1)
        for start, stop in self._space.free_permutations:
            order = configs[:, start:stop].argsort(axis=1, kind="stable")
            configs[:, start:stop] = order.argsort(axis=1)
        for component in self._space.components:
            _repair(configs, component)
        return configs


def _repair(configs: NDArray, component: Component) -> None:
    """Replace what the table does not allow by its nearest row, in place."""
    scale = 1 + component.sizes.sum()
    for place in np.flatnonzero(~component.allows(configs)):
        distances = np.abs(component.rows - configs[place, component.columns])
        nearest = (distances > 0).sum(axis=1) + distances.sum(axis=1) / scale
        configs[place, component.columns] = component.rows[nearest.argmin()]
