"""What the models learn of a change: how much it would gain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def targets(differences: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return `(n,)` targets of cost differences, -log(1 + gain), standardised, small is good; all zeros without gains.

    What a change costs more than it should does not matter once it is refused. A model of the gain alone predicts an
    expected improvement (Mockus 1975) as its mean, with no assumption on how costs are distributed: it is right
    where rare changes gain much, as long ones do. The logarithm keeps the few largest from deciding all.
    """
    scores = -np.log1p(np.maximum(-differences, 0.0))
    spread = scores.std()
    return ((scores - scores.mean()) / (spread if spread > 1e-9 else 1.0)).astype(np.float32)
