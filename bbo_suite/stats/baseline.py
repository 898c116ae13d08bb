"""The expected result of random search in a space whose costs are all known, in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
