"""Runs as curves: the best cost so far, its gain, when it reaches targets, and random search in expectation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST_GAIN = 1e-4
"""Smallest best gain of which shares are computed: below it, noise would make one strategy 100 % and all others 0 %."""

SMALLEST_GAIN_TEXT = f"{100 * SMALLEST_GAIN:g} %"


def best_so_far(values: ArrayLike) -> NDArray[np.float64]:
    """Return the `(..., n)` running minimum of costs along the last axis."""
    return np.minimum.accumulate(np.asarray(values, np.float64), axis=-1)


def quartiles(values: ArrayLike) -> NDArray[np.float64]:
    """Return `(3, n)`: lower quartile, median and upper quartile over the first axis of `(runs, n)`."""
    return np.quantile(np.asarray(values, np.float64), [0.25, 0.5, 0.75], axis=0)


def area_under(values: ArrayLike, length: int) -> NDArray[np.float64]:
    """Return the mean over `length` evaluations of `(..., n)` curves, holding the last value of shorter ones.

    The normalised area under the curve (any-time performance); for speedups, higher is better.

    Raises:
      ValueError: a curve has no value, or more than `length`.
    """
    curves = np.asarray(values, np.float64)
    n = curves.shape[-1]
    if not 1 <= n <= length:
        raise ValueError(f"curves of {n} evaluations do not fit into {length}")
    return (curves.sum(axis=-1) + (length - n) * curves[..., -1]) / length


def fraction_of_optimum(costs: ArrayLike, optimum: float) -> NDArray[np.float64]:
    """Return optimum / cost, elementwise: 1 where the optimum was found, 0 where every candidate failed (cost inf).

    For an optimum of 0 the fraction is 1 where it was found, else 0.
    """
    values = np.asarray(costs, np.float64)
    if optimum == 0:
        return (values == 0).astype(float)
    return optimum / values


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


def expected_best(costs: ArrayLike, budgets: ArrayLike) -> NDArray[np.float64]:
    """Return the `(b,)` expected best cost of random candidates without replacement, exactly.

    With N costs sorted, the best of n draws lies at or behind place k with probability C(N - k, n) / C(N, n). (The cost
    at the expected rank, which is often used instead, is not the expected cost.)

    Args:
      costs: `(N,)` costs of the whole space, finite.
      budgets: `(b,)` numbers of candidates, 1 or more; above N the whole space is evaluated.
    """
    rising = np.sort(np.asarray(costs, np.float64))
    steps = np.append(rising[0], np.diff(rising))
    return np.array([steps @ _all_behind(len(rising), min(int(n), len(rising))) for n in np.asarray(budgets)])


def _all_behind(size: int, n: int) -> NDArray[np.float64]:
    """Return the `(size,)` probabilities that all n draws lie at or behind each place."""
    from scipy.special import gammaln

    k = np.arange(size - n + 1)  # beyond, fewer than n places are left
    logs = gammaln(size - k + 1) - gammaln(size - k - n + 1) - gammaln(size + 1) + gammaln(size - n + 1)
    return np.append(np.exp(logs), np.zeros(n - 1))


def over_random(best: ArrayLike, random: ArrayLike, optimum: float) -> NDArray[np.float64]:
    """Return the improvement over random search: 0 is as good as random, 1 is the optimum, below 0 is worse.

    Willemsen et al. 2024 (a methodology for comparing auto-tuning methods), equation 3, with the exact expectation.

    Args:
      best: `(n,)` best cost so far.
      random: `(n,)` of `expected_best` after as many evaluations. The result is nan where it equals the optimum.
    """
    base, cost = np.asarray(random, np.float64), np.asarray(best, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(base > optimum, (base - cost) / (base - optimum), np.nan)
