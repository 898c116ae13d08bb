"""The K candidates that serve several programs best, if each program may use the best of them."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

_EXHAUSTIVE = 200_000
"""The most sets of candidates that are all tried."""


def keep(ratios: NDArray[np.float64], k: int) -> list[int]:
    """Return k rows of `(n, p)` costs so that the geometric mean of the least cost of each column is lowest.

    All sets are tried if they are few; otherwise rows are added one by one, and exchanged while that helps.

    Args:
      ratios: costs of candidates over those of the defaults, more than 0; inf where one fails.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(np.minimum(ratios, 1e300))
    k = min(k, len(logs))
    if math.comb(len(logs), k) <= _EXHAUSTIVE:
        return list(min(combinations(range(len(logs)), k), key=lambda rows: _cost(logs[list(rows)])))
    chosen = _greedy(logs, k)
    return sorted(_exchanged(logs, chosen))


def shared_ratio(ratios: NDArray[np.float64]) -> float:
    """Return the geometric mean, over the columns, of the least of each."""
    return float(np.exp(np.log(ratios.min(axis=0)).mean()))


def _cost(logs: NDArray[np.float64]) -> float:
    return float(logs.min(axis=0).sum())


def _greedy(logs: NDArray[np.float64], k: int) -> list[int]:
    chosen: list[int] = []
    for _ in range(k):
        base = logs[chosen].min(axis=0) if chosen else np.full(logs.shape[1], np.inf)
        totals = np.minimum(logs, base).sum(axis=1)
        totals[chosen] = np.inf
        chosen.append(int(totals.argmin()))
    return chosen


def _exchanged(logs: NDArray[np.float64], chosen: list[int]) -> list[int]:
    """Replace one row by another that lowers the cost, until none does."""
    cost, improved = _cost(logs[chosen]), True
    while improved:
        improved = False
        for place in range(len(chosen)):
            rest = chosen[:place] + chosen[place + 1 :]
            base = logs[rest].min(axis=0) if rest else np.full(logs.shape[1], np.inf)
            totals = np.minimum(logs, base).sum(axis=1)
            best = int(totals.argmin())
            if totals[best] < cost - 1e-12:
                chosen[place], cost, improved = best, float(totals[best]), True
    return chosen
