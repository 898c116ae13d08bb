"""What the models of `mbo` may predict, given `(n,)` cost differences in medians; small is good."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_strategies.mbo.ensemble import targets

Floats = NDArray[np.float64]


def _standardised(scores: Floats) -> NDArray[np.float32]:
    spread = scores.std()
    return ((scores - scores.mean()) / (spread if spread > 1e-9 else 1.0)).astype(np.float32)


def improves(differences: Floats) -> NDArray[np.float32]:
    """Target: does the change improve the state?"""
    return _standardised(-(differences < 0).astype(np.float64))


def best_tenth(differences: Floats) -> NDArray[np.float32]:
    """Target: is the change among the best tenth of those that are known?"""
    return _standardised(-(differences <= np.quantile(differences, 0.1)).astype(np.float64))


def signed_logarithm(differences: Floats) -> NDArray[np.float32]:
    """Target: the logarithm of the difference, losses included."""
    return _standardised(np.sign(differences) * np.log1p(np.abs(differences)))


def root(differences: Floats) -> NDArray[np.float32]:
    """Target: the root of the gain, and a tenth of the root of a loss."""
    return _standardised(np.where(differences < 0, -1.0, 0.1) * np.sqrt(np.abs(differences)))


def rescaled(differences: Floats) -> NDArray[np.float32]:
    """Target: as usual, of differences in medians of those that are held, and not of the first ones."""
    known = np.abs(differences[differences != 0])
    return targets(differences / np.median(known) if len(known) else differences)
