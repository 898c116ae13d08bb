"""What the models promise of a candidate: the acquisition functions of Bayesian optimization, for costs."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

NAMES = ("mean", "ucb", "ei", "thompson")


def promise(
    name: str, predictions: NDArray[np.float64], noise: float, incumbent: float, exploration: float, rng: Generator
) -> NDArray[np.float64]:
    """Return `(n,)` numbers, large is promising.

    Args:
      name: `mean`, `ucb` (Srinivas et al. 2010), `ei` (expected improvement, Mockus 1975; Jones et al. 1998) or
        `thompson` (1933: one draw a candidate).
      predictions: `(members, n)` predicted costs, small is good.
      noise: standard deviation of what no member explains.
      incumbent: the cost to improve on.
      exploration: weight of the standard deviation in `ucb`.
      rng: draws for `thompson`.
    """
    mean = predictions.mean(axis=0)
    spread = np.sqrt(predictions.var(axis=0) + noise**2)
    if name == "mean":
        return -mean
    if name == "ucb":
        return exploration * spread - mean
    if name == "thompson":
        return -rng.normal(mean, spread)
    return expected_improvement(mean, spread, incumbent)


def expected_improvement(
    mean: NDArray[np.float64], spread: NDArray[np.float64], incumbent: float
) -> NDArray[np.float64]:
    """Return E[max(incumbent - cost, 0)] for normal costs of `(n,)` means and standard deviations."""
    from scipy.special import ndtr

    spread = np.maximum(spread, 1e-12)
    z = (incumbent - mean) / spread
    return spread * (z * ndtr(z) + np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi))
