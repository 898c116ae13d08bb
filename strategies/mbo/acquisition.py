"""What the models promise of a candidate: the acquisition functions of Bayesian optimization."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

NAMES = ("mean", "ucb", "ei", "thompson")


def promise(
    name: str, predictions: NDArray[np.float64], noise: float, none: float, exploration: float, rng: Generator
) -> NDArray[np.float64]:
    """Return `(n,)` numbers, large is promising.

    Args:
      name: `mean` (of predicted gains, which is an expected improvement without a distribution), `ucb` (Srinivas et al.
        2010), `ei` (Mockus 1975: of a normal distribution, over no gain) or `thompson` (1933: one draw a candidate).
      predictions: `(members, n)` predicted targets, small is good.
      noise: standard deviation of what no member explains.
      none: the target of a change that gains nothing.
      exploration: weight of the standard deviation in `ucb`.
      rng: draws for `thompson`.
    """
    mean = predictions.mean(axis=0)
    spread = np.sqrt(predictions.var(axis=0) + noise**2)
    if name == "ucb":
        return exploration * spread - mean
    if name == "ei":
        return _expected_improvement(none - mean, spread)
    return -(rng.normal(mean, spread) if name == "thompson" else mean)


def _expected_improvement(better: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of normal distributions cut off at zero (Jones et al. 1998, equation 15)."""
    from scipy.special import ndtr

    scaled = better / np.maximum(spread, 1e-12)
    return better * ndtr(scaled) + spread * np.exp(-(scaled**2) / 2) / np.sqrt(2 * np.pi)
