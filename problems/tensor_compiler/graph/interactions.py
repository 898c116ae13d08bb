"""Which decisions of a pass interact, from the places that they share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

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
    left, right = [], []
    for distance in range(1, _MOST_AT_A_PLACE):
        same = np.flatnonzero(places[distance:] == places[:-distance])
        left.append(decisions[same])
        right.append(decisions[same + distance])
    rows, columns = np.concatenate(left + right), np.concatenate(right + left)
    table = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(d, d)).tocsr()
    table.setdiag(0)
    table.eliminate_zeros()
    table.sort_indices()
    return table.indptr.astype(np.int64), table.indices.astype(np.int32)
