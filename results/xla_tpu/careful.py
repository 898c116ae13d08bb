"""A plugin: the blocks of `xla-tpu`, where a win must not cost memory or be contradicted by the roofline."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
from numpy.typing import NDArray

from bbo_problems.xla_tpu.problem import XlaTpuProblem
from bbo_suite import Evaluations

BESIDE = re.compile(r"roofline ([+-][\d.]+)%, peak memory ([+-][\d.]+)%")


class Careful(XlaTpuProblem):
    """A candidate whose roofline or peak memory is x percent worse costs at least x percent more than the default."""

    def __init__(self, instance: str) -> None:
        super().__init__(instance)
        self._cycles = self.estimate(self.default_row()).cycles

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the costs of `(n, d)` candidates."""
        found = super().evaluate(configs)
        changes = [BESIDE.search(found.reasons.get(i, "")) for i in range(len(configs))]
        worse = np.array([max(0.0, *map(float, change.groups())) if change else 0.0 for change in changes])
        least = np.where(worse > 0, self._cycles * (1 + worse / 100), 0.0)
        return dataclasses.replace(found, values=np.maximum(found.values, least))
