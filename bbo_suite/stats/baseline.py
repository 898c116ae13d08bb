"""What random search finds in a space whose costs are all known, in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def expected_best(costs: ArrayLike, budgets: ArrayLike) -> NDArray[np.float64]:
    """Return the `(b,)` expected best cost of random candidates without replacement, exactly.

    Of N costs in rising order the best of n lies behind place k with probability C(N - k, n) / C(N, n). The value at
    the expected rank, which others use, is not the expected value.

    Args:
      costs: `(N,)` of the whole space, finite.
      budgets: `(b,)` numbers of candidates, 1 or more; beyond N the space is covered.
    """
    rising = np.sort(np.asarray(costs, np.float64))
    steps = np.append(rising[0], np.diff(rising))
    return np.array([steps @ _all_behind(len(rising), min(int(n), len(rising))) for n in np.asarray(budgets)])


def _all_behind(size: int, n: int) -> NDArray[np.float64]:
    """Return the `(size,)` probabilities that all n draws lie at or behind each place."""
    from scipy.special import gammaln

    k = np.arange(size - n + 1)  # further on there are fewer than n places left
    logs = gammaln(size - k + 1) - gammaln(size - k - n + 1) - gammaln(size + 1) + gammaln(size - n + 1)
    return np.append(np.exp(logs), np.zeros(n - 1))


def over_random(best: ArrayLike, random: ArrayLike, optimum: float) -> NDArray[np.float64]:
    """Return the improvement over random search: 0 is as good as random, 1 is the optimum, below 0 is worse.

    Willemsen et al. 2024 (a methodology for comparing auto-tuning methods), equation 3, with the exact expectation.

    Args:
      best: `(n,)` best cost so far.
      random: `(n,)` of `expected_best` after as many evaluations. Where it is the optimum already the answer is nan.
    """
    base, found = np.asarray(random, np.float64), np.asarray(best, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(base > optimum, (base - found) / (base - optimum), np.nan)
