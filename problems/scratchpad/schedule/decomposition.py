"""The groups of a schedule as parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.parts.decomposition import Decomposition, Description

from .arrays import Arrays
from .evaluation import FEATURES, Schedule, parts
from .group import Group


class ScheduleDecomposition(Decomposition):
    """Says which groups a candidate has, and what each looks like."""

    feature_names = FEATURES

    def __init__(self, graph: Arrays, schedule: Schedule, group: Group) -> None:
        self._graph, self._schedule, self._group = graph, schedule, group

    def describe(self, configs: NDArray) -> Description:
        """Return the groups of `(n, d)` candidates."""
        return self.evaluated(configs)[0]

    def evaluated(self, configs: NDArray) -> tuple[Description, NDArray[np.float64]]:
        """Return the groups of `(n, d)` candidates and the time of each."""
        most = len(configs) * len(self._graph.outputs)
        starts, keys, costs = np.zeros(len(configs) + 1, np.int64), np.empty(most, np.uint64), np.empty(most)
        features = np.empty((most, len(FEATURES)))
        rows = configs.astype(np.int64)
        parts(rows, self._graph, self._schedule, self._group, starts, keys, costs, features)
        count = starts[-1]
        return Description(starts, keys[:count], np.ones(count), features[:count]), costs[:count]
