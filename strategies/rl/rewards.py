"""What a change is worth to the policy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BAD = 0.3  # of what a bad change of the usual size is worth; most changes are bad, and which are good matters more
_LEAST = 5e-324  # a cost of 0 counts as the smallest number above it


class Rewards:
    """Turns costs into rewards: logarithms of speedups over the state, in units of their running medians.

    Gains and losses have units of their own, and losses count less: most changes are bad, and a policy that is paid
    for avoiding the worst learns to change nothing that matters. For the same reason a candidate that costs exactly
    what the state costs counts as a usual loss. Large rewards are squashed by the inverse hyperbolic sine, so that
    neither outliers nor units matter. A failure is a large loss.
    """

    def __init__(self) -> None:
        self._gain = self._loss = 0.0

    def __call__(self, values: NDArray[np.float64], state: float) -> NDArray[np.float64]:
        """Return `(n,)` rewards of the costs of changes of a state, given its own cost."""
        good = np.isfinite(values)
        if not np.isfinite(state):
            return np.where(good, 1.0, -1.0)
        known = np.where(good, values, state)
        gains = np.log(max(state, _LEAST)) - np.log(np.maximum(known, _LEAST))
        self._gain = _running(self._gain, gains[gains > 0])
        self._loss = _running(self._loss, -gains[gains < 0])
        losses = np.where(gains == 0, 1.0, -gains / (self._loss or 1.0))
        losses = np.where(good, np.minimum(np.arcsinh(losses), 3.0), 3.0)
        return np.where(gains > 0, 1 + np.arcsinh(gains / (self._gain or 1.0)), -_BAD * losses)


def _running(scale: float, sizes: NDArray[np.float64]) -> float:
    """Return the running median of positive sizes."""
    if not len(sizes):
        return scale
    now = float(np.median(sizes))
    return 0.8 * scale + 0.2 * now if scale else now
