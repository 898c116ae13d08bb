"""Costs as targets that every regressor can learn: any scale, any outliers, failures included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def targets(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return `(n,)` normal scores of costs: the standard normal quantiles of their ranks, standardised, small is good.

    Only the order counts, so neither unit nor outliers matter, and the differences among the best keep their weight
    when the worst are a thousand times dearer. What failed (not finite) shares one rank behind the worst finite cost.
    All zeros when there is no order to learn.
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    costs = np.where(np.isfinite(values), values, np.inf)
    scores = ndtri((rankdata(costs) - 0.5) / max(1, len(costs)))
    spread = scores.std()
    return ((scores - scores.mean()) / (spread if spread > 1e-9 else 1.0)).astype(np.float32)
