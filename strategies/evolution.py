"""An evolutionary algorithm: a small population, adaptive mutation, and crossover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Strategy, Task, option

from .archive import Archive, is_small
from .changes import AdaptiveChanges
from .opening import Opening

_BATCH, _ROUNDS = 20, 100  # larger batches know less of earlier costs, smaller ones take more time per candidate
_RETRIES = 5


@dataclass(frozen=True)
class EvolutionOptions:
    """Options of `evolution`."""

    population: int = option(5, "candidates that survive a generation", low=1, high=100_000)
    crossover: float = option(0.5, "share of children with two parents", low=0, high=1)


class Evolution(Strategy):
    """A (mu + lambda) evolutionary algorithm with adaptive mutation (Doerr et al. 2017).

    A batch has at most 20 candidates, or a hundredth of the budget. Parents win a tournament of two. A child is a copy
    of one parent or a crossover of two: uniform, or a range of neighbouring parameters from one of them. Then an
    operator changes it (`AdaptiveMutation`), once or several times (`MutationRate`). A child that was proposed before
    is changed further, up to five times. If it is still not new, it is left out where the space has fewer candidates
    than 100 times the budget. The mu best of parents and children survive; of equal ones the younger, so that the
    search moves on plateaus. The first batch holds the default and changes of it, or where the default is a nearly
    empty sequence, random candidates (`Opening`).

    Memory: the population, a batch, and 16 characters for each proposed candidate.
    """

    Options: ClassVar[type] = EvolutionOptions
    options: EvolutionOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: EvolutionOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._moves = Moves(task.space)
        self._changes = AdaptiveChanges(self._moves, rng)
        self._population: NDArray = task.default[None].astype(task.space.dtype)
        self._costs = np.array([np.inf])
        self._archive, self._begun = Archive(task.space, rng), False
        self._is_small, self._opening = is_small(task, budget), Opening(task, budget, rng)
        self._kinds, self._parents = np.zeros((2, 0), np.int64), np.zeros(0)  # of the last batch

    def ask(self, n: int) -> NDArray:
        """Return at most 20 children, the default before all others; no rows when a small space is used up."""
        n = min(n, _BATCH, max(1, self.budget // _ROUNDS))
        if len(first := self._opening.draw(n)):
            self._begun = True
            self._archive.add(self._archive.digests(first))
            return first
        children, self._kinds, self._parents = self._bred(n)
        if not self._begun:
            children[0], self._begun = self.task.default, True
        new = self._vary(children)
        if len(new) == n or not self._is_small:
            return children
        if not len(new):
            self._kinds, self._parents = np.zeros((2, 0), np.int64), np.zeros(0)
            return self._archive.others(n)
        self._kinds, self._parents = self._kinds[:, new], self._parents[new]
        return children[new]

    def _vary(self, children: NDArray) -> NDArray[np.int64]:
        """Change children that are not new again, in place; return the places of those that are new afterwards."""
        digests = self._archive.digests(children)
        new = self._archive.fresh(digests)
        for _ in range(_RETRIES):
            if len(new) == len(children):
                break
            again = np.setdiff1d(np.arange(len(children)), new)
            children[again] = self._moves.mutate(children[again], np.ones(len(again), np.int64), self.rng)
            for i, digest in zip(again, self._archive.digests(children[again]), strict=True):
                digests[i] = digest
            new = self._archive.fresh(digests)
        self._archive.add(digests)
        return new

    def _bred(self, n: int) -> tuple[NDArray, NDArray[np.int64], NDArray[np.float64]]:
        """Return `n` children, how each was changed (see `AdaptiveChanges`), and the cost of its better parent."""
        mothers = self._winners(n)
        children, costs = self._population[mothers], self._costs[mothers]
        if len(self._population) > 1:
            pairs = np.flatnonzero(self.rng.random(n) < self.options.crossover)
            fathers = self._winners(len(pairs))
            children[pairs] = self._crossed(children[pairs], self._population[fathers])
            costs[pairs] = np.minimum(costs[pairs], self._costs[fathers])
        changes = self._changes.change(children) if len(self._moves.movable) else np.zeros((2, n), np.int64)
        return children, changes, costs

    def _winners(self, n: int) -> NDArray[np.int64]:
        """Return the places of `n` winners of tournaments; the population is sorted, so the smaller place wins."""
        return self.rng.integers(0, len(self._population), (n, 2)).min(axis=1)

    def _crossed(self, mothers: NDArray, fathers: NDArray) -> NDArray:
        grafted = self.rng.random(len(mothers)) < 0.5
        children = self._moves.cross(mothers, fathers, self.rng)
        children[grafted] = self._moves.graft(mothers[grafted], fathers[grafted], self.rng)
        return children

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the best of parents and children survive."""
        numbers = self._kinds[1]
        if len(numbers) and numbers.all():  # else nothing can change, or they come from the walk over the space
            self._changes.learn(self._kinds, self._parents, values)
        self._select(configs, values)

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Take candidates of other strategies into the population."""
        self._archive.add(self._archive.digests(configs))
        self._select(configs, values)

    def _select(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        costs = np.concatenate([values, self._costs])
        order = np.argsort(costs, kind="stable")[: self.options.population]
        self._population, self._costs = np.concatenate([configs, self._population])[order], costs[order]
