"""The base class of searches that propose candidates in plans, each measured whole before the next is made."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Strategy, Task

from ..archive import Archive


class Planned(Strategy):
    """Proposes the candidates of a plan in batches of any size, and learns all their costs at once.

    Attributes:
      archive: what was proposed before.
      moves: random changes of candidates.
    """

    def __init__(self, task: Task, budget: int, rng: Generator, options: Any) -> None:  # noqa: ANN401 - its own Options
        super().__init__(task, budget, rng, options)
        self.archive, self.moves = Archive(task.space, rng), Moves(task.space)
        self._left = self.new(np.concatenate([task.default[None].astype(task.space.dtype), self.begin()]))
        self._told: list[tuple[NDArray, NDArray[np.float64]]] = []

    def ask(self, n: int) -> NDArray:
        """Return the next of the plan's candidates; no rows when a plan is empty."""
        if not len(self._left):
            self._left = self.plan()
        configs, self._left = self._left[:n], self._left[n:]
        return configs

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn the costs if they complete the plan."""
        self._told.append((configs, values))
        if not len(self._left):
            rows, costs = (np.concatenate(arrays) for arrays in zip(*self._told, strict=True))
            self._told = []
            self.learn(rows, costs)

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Do not propose what another strategy has proposed."""
        self.archive.add(self.archive.digests(configs))

    def new(self, configs: NDArray, most: int | None = None) -> NDArray:
        """Return the first `most` of `(n, d)` candidates that were never proposed; they count as proposed now."""
        return configs[self.archive.claim(configs, len(configs) if most is None else most)]

    def random(self, n: int) -> NDArray:
        """Return up to `n` random candidates that were never proposed; none only if there are none."""
        drawn = self.new(self.task.space.sample(n, self.rng))
        return drawn if len(drawn) or not n else self.archive.others(n)

    def begin(self) -> NDArray:
        """Return what is measured with the default, before any cost is known."""
        return self.task.default[None][:0].astype(self.task.space.dtype)

    @abstractmethod
    def plan(self) -> NDArray:
        """Return `(n, d)` new candidates, or none to end the search."""

    @abstractmethod
    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn the `(n,)` costs of a plan's candidates, in its order; inf for those that failed."""


def fitness(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return best cost / cost, `(n,)`; 0 for failures. Costs of 0 or less are first shifted above 0."""
    best = costs.min(initial=np.inf)
    if np.isinf(best):
        return np.zeros(len(costs))
    unit = abs(best) or 1.0
    return unit / (costs - best + unit)
