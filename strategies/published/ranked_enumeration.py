"""Enumeration ranked by a model that the task declares: the best by the model are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Level, Parts, Task, option

from .best_found import BestFound
from .needs import model_of
from .planned import Planned
from .single_changes import SingleChanges

_CHUNK = 256


@dataclass(frozen=True)
class DeepCutsOptions:
    """Options of `published:deepcuts`."""

    enumerated: int = option(1000, "candidates that are ranked for a plan (ours)", low=1, high=1_000_000)
    top: int = option(20, "candidates of a plan, the best by the model (ours)", low=1, high=10_000)


class DeepCuts(Planned):
    """Enumeration ranked by a declared model, the top k measured, in the style of DeepCuts (Jung et al. 2021).

    Reproduced, from the publication's description: candidates are enumerated and ranked by a model of their cost that
    needs no measurement, and only the best are measured. Its settings are not published; these are ours.

    Different here: the model is the sum of what the task's compiler estimates for the parts of a candidate, so this
    strategy is counted among those that see parts, though it ignores their costs. Our spaces are too large to be
    enumerated as a whole: a plan ranks single changes of the best measured candidate, and random candidates follow when
    none of these is left.

    Not reproduced: its model of GPU kernels, which is its contribution, and its space of implementations.
    """

    Options: ClassVar[type] = DeepCutsOptions
    level: ClassVar[Level] = Level.PARTS
    options: DeepCutsOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: DeepCutsOptions) -> None:
        self._model = model_of(task, "published:deepcuts")
        super().__init__(task, budget, rng, options)
        self._changes = SingleChanges(task.space)
        self._best: NDArray = task.default.astype(task.space.dtype)
        self._cost = np.inf

    def plan(self) -> NDArray:
        """Return the best new candidates by the model; random ones where no single change is new."""
        best = BestFound(self.task.space, self.archive, self.options.top)
        places = self.rng.permutation(len(self._changes))[: self.options.enumerated]
        for first in range(0, len(places), _CHUNK):
            rows = self._changes.rows(self._best, places[first : first + _CHUNK])
            if len(rows):
                best.add(rows, -self.estimates(rows))
        return self.new(best.rows) if len(best.rows) else self.random(self.options.top)

    def estimates(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` estimated costs of allowed candidates."""
        known = self._model.describe(configs)
        assert self._model.estimate is not None
        return Parts(known.starts, known.keys, known.counts, known.features[:, self._model.estimate]).sums()

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Go on from the best measured."""
        place = int(np.argmin(values))
        if values[place] < self._cost:
            self._best, self._cost = configs[place].copy(), float(values[place])
