"""The best candidates of a run, measured again after its last evaluation if costs vary.

The lowest of many noisy costs is too low. So the ten best candidates are measured in pairs with the default, in turns.
This takes nothing from the budget, and no strategy learns of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import measured_pair
from ..core.problem import Problem
from ..store.remeasured import ROUNDS, Pair, PairLog

MOST = 10
"""The number of candidates that are measured again."""
MEASUREMENTS = 2 * ROUNDS * MOST
"""Evaluations that this takes, those of the default included."""


class Finalists:
    """The best distinct candidates that a run has evaluated so far, each at its lowest cost."""

    def __init__(self) -> None:
        self._best: dict[str, tuple[float, int, NDArray]] = {}

    def add(self, done: int, configs: NDArray, digests: Sequence[str], values: NDArray[np.float64]) -> None:
        """Take a batch of `(n, d)` candidates and their `(n,)` costs.

        Args:
          done: evaluations before this batch.
        """
        bound = max(value for value, _, _ in self._best.values()) if len(self._best) == MOST else np.inf
        for i in np.flatnonzero(values < bound).tolist():
            value, digest = float(values[i]), digests[i]
            if digest not in self._best or value < self._best[digest][0]:
                self._best[digest] = value, done + i + 1, configs[i].copy()
        self._best = dict(sorted(self._best.items(), key=lambda item: item[1][:2])[:MOST])

    def measure(self, problem: Problem, folder: Path, stopped: Callable[[], bool]) -> bool:
        """Measure them in pairs with the default, store the pairs, and return False if this was stopped.

        Pairs that are stored already are not measured again.

        Raises:
          UserError: the default fails, the problem breaks its contract, or the stored pairs are damaged.
        """
        log = PairLog(folder)
        known = {(pair.round, pair.evaluation) for pair in log}
        log.append([])
        for number in range(1, ROUNDS + 1):
            for _, evaluation, config in self._best.values():
                if (number, evaluation) in known:
                    continue
                if stopped():
                    return False
                default, value, _ = measured_pair(problem, config)
                log.append([Pair(number, evaluation, default, value, problem.space.pack(config)).line()])
        log.sync()
        return True
