"""What a round of candidates says about each change: rewards, and whose merit they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .ppo import Round

_FAILED = -3.0
_NOTHING = -1.0
_LEAST = 5e-324  # a cost of 0 counts as the smallest number above it


class Rewards:
    """Turns costs into rewards: logarithms of speedups over the incumbent, in units of their running median.

    Large ones are squashed by the inverse hyperbolic sine, so that neither outliers nor units matter. A failure gets
    the least. So does, nearly, a candidate that costs exactly what the incumbent costs: it is no progress, but it would
    be the safest thing to propose.
    """

    def __init__(self) -> None:
        self._scale = 0.0

    def __call__(self, values: NDArray[np.float64], incumbent: float) -> NDArray[np.float64]:
        """Return `(n,)` rewards of costs."""
        good = np.isfinite(values)
        known = np.where(good, values, incumbent)
        if not np.isfinite(incumbent):
            return np.where(good, 1.0, _FAILED)
        gains = np.log(max(incumbent, _LEAST)) - np.log(np.maximum(known, _LEAST))
        sizes = np.abs(gains[good & (gains != 0)])
        if len(sizes):
            scale = float(np.median(sizes))
            self._scale = 0.8 * self._scale + 0.2 * scale if self._scale else scale
        rewards = np.arcsinh(np.where(good, gains, 0.0) / (self._scale or 1.0))
        rewards[gains == 0] = _NOTHING
        return np.where(good, np.maximum(rewards, _FAILED), _FAILED)


def shares(
    rewards: NDArray[np.float64], rows: NDArray[np.int64], drawn: NDArray[np.int64], worth: NDArray
) -> NDArray[np.float64]:
    """Return what each draw added to the reward of its candidate: the rest after the expected worths of the others.

    A baseline for each decision that depends on the other decisions (Wu et al. 2018, "Variance reduction for policy
    gradient with action-dependent factorized baselines"): unbiased, and free of their noise.
    """
    expected = worth[drawn]
    total = np.bincount(rows, expected, len(rewards))
    return rewards[rows] - total[rows] + expected


def tally(added: NDArray[np.float64], rows: NDArray[np.int64], drawn: NDArray[np.int64], c: int) -> Round:
    """Return the sums that the objective needs, with advantages of mean 0 and variance 1 over the round.

    Each candidate counts once: one of a hundred changes says little about any of them, and would drown the others.
    """
    weights = 1 / np.bincount(rows)[rows]
    mean = np.average(added, weights=weights)
    advantages = (added - mean) / (np.sqrt(np.average((added - mean) ** 2, weights=weights)) + 1e-8)
    gain, loss, draws, total = (
        np.bincount(drawn, weights * part, c).astype(np.float32)
        for part in (np.maximum(advantages, 0), np.minimum(advantages, 0), np.ones(len(added)), added)
    )
    return Round(gain, loss, draws, total / np.where(draws > 0, draws, 1))
