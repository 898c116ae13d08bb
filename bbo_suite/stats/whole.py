"""The part of a table that has no gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def whole(present: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the `(N,)` rows and `(k,)` columns of the largest part of a table in which nothing is missing.

    Of the columns with most rows so many as make it largest; of two or more, if any two share a row.

    Args:
      present: `(N, k)`, true where the table has a value.
    """
    there = np.asarray(present, bool)
    order = np.argsort(-there.sum(axis=0), kind="stable")
    rows = np.logical_and.accumulate(there[:, order], axis=1)  # those without a gap in the first columns
    number, width = rows.sum(axis=0), np.arange(1, len(order) + 1)
    ranks = np.lexsort((number, number * width, np.minimum(width, 2) * (number > 0)))
    if not len(ranks):
        return np.ones(len(there), bool), np.ones(0, bool)
    return rows[:, ranks[-1]], np.isin(np.arange(len(order)), order[: width[ranks[-1]]])
