"""The groups of operators as parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.parts.decomposition import Decomposition, Description

from .evaluation import FEATURES, parts
from .machine import Machine


class NetworkDecomposition(Decomposition):
    """Says which operators run together in a candidate, and what each group handles."""

    feature_names = FEATURES

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def describe(self, configs: NDArray) -> Description:
        """Return the groups of `(n, d)` candidates."""
        return self.evaluated(configs)[0]

    def evaluated(self, configs: NDArray) -> tuple[Description, NDArray[np.float64]]:
        """Return the groups of `(n, d)` candidates and the bytes that each moves."""
        most = len(configs) * self._machine.ops
        starts, keys, costs = np.zeros(len(configs) + 1, np.int64), np.empty(most, np.uint64), np.empty(most)
        features = np.empty((most, len(FEATURES)))
        parts(configs.astype(np.int64), starts, keys, costs, features, self._machine.at)
        count = starts[-1]
        return Description(starts, keys[:count], np.ones(count), features[:count]), costs[:count]
