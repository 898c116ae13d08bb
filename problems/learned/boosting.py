"""A baseline without a network: boosted trees on the features of whole kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .dataset import Kernels, Settings
from .features import features
from .training import settings

_ITERATIONS = 300


def boosted(training: Kernels, kind: str, test: Kernels, loss: str = "squared_error") -> NDArray[np.float64]:
    """Return the predicted logs of the seconds of all settings of the test kernels (see `training.settings`).

    The loss is one of scikit-learn's.

    The trees learn what the analytical model's estimate gets wrong; for tiles and flags, apart from the mean over the
    settings of a kernel, since only differences within it matter.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    trees = HistGradientBoostingRegressor(loss=loss, max_iter=_ITERATIONS, random_state=0)
    own, kernel, rows = _table(training, kind)
    wrong = np.log(own.seconds / own.estimates)
    if kind != "graph":
        wrong = wrong - (np.bincount(kernel, wrong) / np.maximum(np.bincount(kernel), 1))[kernel]
    trees.fit(rows, wrong)
    own, _, rows = _table(test, kind)
    return np.log(own.estimates) + trees.predict(rows)


def _table(data: Kernels, kind: str) -> tuple[Settings, NDArray[np.int64], NDArray[np.float32]]:
    """Return all settings of a kind, the kernel of each, and their features."""
    own = settings(data, kind)
    kernel = np.repeat(np.arange(len(data)), np.diff(own.starts))
    return own, kernel, features(data.rows[kernel], own.values, own.estimates, data.machine)
