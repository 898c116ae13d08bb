"""Adaptive shares: operators that gained more get more of the budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Credit:
    """The gains and the trials of k operators, in which recent ones count more.

    Attributes:
      gains: `(k,)` what each gained.
      trials: `(k,)` how often each was tried.
    """

    def __init__(self, k: int, gain: float = 0.0, trials: float = 0.0) -> None:
        self.gains, self.trials = np.full(k, float(gain)), np.full(k, float(trials))

    def learn(self, operator: int | slice, gain: float | NDArray, trials: float | NDArray, memory: float = 1.0) -> None:
        """Add the gain of some trials of an operator, after multiplying what it had before by `memory`."""
        self.gains[operator] = memory * self.gains[operator] + gain
        self.trials[operator] = memory * self.trials[operator] + trials

    def fade(self, factor: float) -> None:
        """Multiply everything known so far by a factor."""
        self.gains, self.trials = self.gains * factor, self.trials * factor


def proportions(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `(k,)` shares in proportion to rates, which are not negative; equal shares if all rates are 0.

    Without a gain for long, faded gains underflow to 0: then nothing is known of the operators any more.
    """
    total = rates.sum()
    return rates / total if total > 0 else np.full(len(rates), 1 / len(rates))


def probability_matching(weights: NDArray[np.float64], least: float, total: float = 1.0) -> NDArray[np.float64]:
    """Return `(k,)` shares in proportion to weights, each at least `least`; they add up to 1.

    From Thierens (2005, "An adaptive pursuit strategy", section 2).

    Args:
      weights: `(k,)`, not negative.
      least: at most 1 / k.
      total: the sum of the weights.
    """
    return least + (1 - least * len(weights)) * weights / total
