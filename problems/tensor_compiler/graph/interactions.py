"""Which decisions of a pass interact, from the places that they share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.core.task import interacting

_MOST_AT_A_PLACE = 32


def interactions(places: NDArray, decisions: NDArray, d: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return for each of `d` decisions those that share a place with it, as compressed sparse rows.

    At a place with many decisions, each is connected only to those nearest in number, which bounds the size.

    Args:
      places, decisions: `(k,)` each; decision `decisions[i]` is at place `places[i]`.
      d: number of decisions.
    """
    order = np.lexsort((decisions, places))
    places, decisions = places[order], decisions[order]
    pairs = []
    for distance in range(1, _MOST_AT_A_PLACE):
        same = np.flatnonzero(places[distance:] == places[:-distance])
        pairs.append(np.column_stack([decisions[same], decisions[same + distance]]))
    return interacting(np.concatenate(pairs), d)
