"""Taking several improvements at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Space

from .neighbourhood import Neighbourhood


def merge(state: NDArray, rows: NDArray, near: Neighbourhood, space: Space) -> NDArray:
    """Return the `(d,)` state with the changes of the `(k, d)` rows, each unless it interacts with an earlier one.

    Only the first is taken where the constraints forbid them together.
    """
    merged = rows[0].copy()
    taken = np.zeros(len(state), bool)
    taken[near.around(np.flatnonzero(merged != state))] = True
    for row in rows[1:]:
        columns = np.flatnonzero(row != state)
        if not taken[columns].any():
            merged[columns] = row[columns]
            taken[near.around(columns)] = True
    return merged if space.allowed(merged[None])[0] else rows[0]
