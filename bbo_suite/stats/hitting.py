"""Hitting times: after how many evaluations runs reach targets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def first_hits(curves: ArrayLike, targets: ArrayLike) -> NDArray[np.float64]:
    """Return the `(runs, targets)` number of evaluations at which each run first costs no more than each target.

    Args:
      curves: `(runs, n)` best cost so far.
      targets: `(t,)` costs; inf is returned for a target that was not reached.
    """
    best, levels = np.asarray(curves, np.float64), np.asarray(targets, np.float64)
    hits = np.empty((len(best), len(levels)))
    for run, curve in enumerate(best):
        after = np.searchsorted(-curve, -levels, side="left")  # curves fall, so their negatives are sorted
        hits[run] = np.where(after < len(curve), after + 1, np.inf)
    return hits


def expected_running_time(hits: ArrayLike, spent: ArrayLike) -> NDArray[np.float64]:
    """Return the `(t,)` expected running time to each target with restarts (ERT; Hansen et al. 2021, COCO).

    The evaluations of all runs before the target, divided by the number of runs that reached it; inf if none did.

    Args:
      hits: `(runs, t)` of `first_hits`.
      spent: `(runs,)` total evaluations of each run.
    """
    reached = np.asarray(hits, np.float64)
    used = np.where(np.isfinite(reached), reached, np.asarray(spent, np.float64)[:, None]).sum(axis=0)
    number = np.isfinite(reached).sum(axis=0)
    return np.where(number > 0, used / np.maximum(1, number), np.inf)


def runtime_ecdf(hits: ArrayLike, evaluations: ArrayLike) -> NDArray[np.float64]:
    """Return the `(n,)` share of all (run, target) pairs that were reached within each of `(n,)` evaluations."""
    sorted_hits = np.sort(np.asarray(hits, np.float64), axis=None)
    return np.searchsorted(sorted_hits, np.asarray(evaluations, np.float64), side="right") / len(sorted_hits)
