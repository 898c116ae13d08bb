"""How often a strategy is within a factor of the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def performance_profile(costs: ArrayLike, factors: ArrayLike) -> NDArray[np.float64]:
    """Return the `(k, f)` share of tasks on which each strategy costs at most each factor times the best one's cost.

    Dolan and More 2002, equation 2.2. A task on which every strategy failed counts as solved by none.

    Args:
      costs: `(N, k)` of k strategies on N tasks; inf where one failed.
      factors: `(f,)`, 1 or more.
    """
    table = np.asarray(costs, np.float64)
    best = table.min(axis=1, keepdims=True)
    within = table[:, :, None] <= best[:, :, None] * np.asarray(factors, np.float64)
    return (within & np.isfinite(table)[:, :, None]).mean(axis=0)
