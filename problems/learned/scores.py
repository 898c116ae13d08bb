"""How good predictions are: errors of absolute times, and what choosing by them loses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mape(predicted: NDArray[np.float64], seconds: NDArray[np.float64]) -> float:
    """Return the mean absolute percentage error of `(k,)` predicted seconds."""
    return float(100 * np.mean(np.abs(predicted / seconds - 1)))


def chosen_ape(scores: NDArray[np.float64], seconds: NDArray[np.float64], starts: NDArray[np.int64]) -> float:
    """Return the absolute percentage error of the settings that scores choose (Kaufman et al. 2021, tile size).

    The sum over kernels of what the setting with the lowest score takes more than the fastest, over the sum of the
    fastest.

    Args:
      scores, seconds: `(s,)` of all settings.
      starts: `(k + 1,)`; the settings of kernel i are `starts[i]:starts[i + 1]`.
    """
    lost = fastest = 0.0
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if end > first:
            least = float(seconds[first:end].min())
            lost += float(seconds[first + int(np.argmin(scores[first:end]))]) - least
            fastest += least
    return 100 * lost / fastest
