"""An evolutionary algorithm with heavy-tailed mutation and uniform crossover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Strategy, Task, option


@dataclass(frozen=True)
class EvolutionOptions:
    """Options of `evolution`."""

    population: int = option(0, "candidates that survive a round; 0: fewer the more parameters", low=0, high=100_000)
    crossover: float = option(0.5, "share of children with two parents", low=0, high=1)
    tail: float = option(1.5, "exponent of the power law of changes a child; larger: fewer changes", low=1.01, high=10)


class Evolution(Strategy):
    """A (mu + lambda) evolutionary algorithm; lambda is the batch.

    Parents win a tournament of two. A child is a uniform crossover of two parents or a copy of one, then changed in a
    number of places drawn from a power law (Doerr et al. 2017, "Fast genetic algorithms"), so that single changes are
    common and large jumps possible. The mu best of parents and children survive. The first batch holds the default
    and changes of it. Large populations pay on small spaces only, so mu falls with the number of parameters.
    """

    Options: ClassVar[type] = EvolutionOptions
    options: EvolutionOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: EvolutionOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._moves = Moves(task.space)
        movable = max(1, len(self._moves.movable))
        self._survivors = options.population or int(np.clip(30_000 // movable, 10, 100))
        most = max(1, movable // 2)
        chances = np.arange(1, most + 1) ** -options.tail
        self._chances = np.cumsum(chances / chances.sum())
        self._population: NDArray = task.default[None].astype(task.space.dtype)
        self._costs = np.array([np.inf])
        self._started = False

    def ask(self, n: int) -> NDArray:
        """Return `n` children; in the first batch the default comes first."""
        children = self._population[self._winners(n)]
        crossed = np.flatnonzero(self.rng.random(n) < self.options.crossover)
        if len(crossed) and len(self._population) > 1:
            others = self._population[self._winners(len(crossed))]
            children[crossed] = self._moves.cross(children[crossed], others, self.rng)
        children = self._moves.mutate(children, self._changes(n), self.rng)
        if not self._started:
            children[0] = self.task.default
            self._started = True
        return children

    def _winners(self, n: int) -> NDArray[np.int64]:
        """Return the places of `n` parents; the population is sorted, so the smaller place wins."""
        return self.rng.integers(0, len(self._population), (n, 2)).min(axis=1)

    def _changes(self, n: int) -> NDArray[np.int64]:
        return 1 + np.searchsorted(self._chances, self.rng.random(n) * self._chances[-1])

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the best of parents and children survive; among equals the younger, which keeps plateaus in motion."""
        costs = np.concatenate([values, self._costs])
        order = np.argsort(costs, kind="stable")[: self._survivors]
        self._population, self._costs = np.concatenate([configs, self._population])[order], costs[order]
