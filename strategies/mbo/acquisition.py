"""What the models promise of a candidate: the acquisition functions of Bayesian optimization."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

NAMES = ("mean", "ucb", "thompson")


def promise(
    name: str, predictions: NDArray[np.float64], noise: float, exploration: float, rng: Generator
) -> NDArray[np.float64]:
    """Return `(n,)` numbers, large is promising.

    Args:
      name: `mean` (of predicted gains, so an expected improvement), `ucb` (Srinivas et al. 2010) or `thompson` (1933:
        one draw a candidate).
      predictions: `(members, n)` predicted targets, small is good.
      noise: standard deviation of what no member explains.
      exploration: weight of the standard deviation in `ucb`.
      rng: draws for `thompson`.
    """
    mean = predictions.mean(axis=0)
    spread = np.sqrt(predictions.var(axis=0) + noise**2)
    if name == "ucb":
        return exploration * spread - mean
    return -(rng.normal(mean, spread) if name == "thompson" else mean)
