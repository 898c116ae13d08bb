"""Evolution on a surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task, option

from ..adaptive_moves import proportions
from .best_found import BestFound
from .model_search import ModelSearch
from .planned import fitness
from .surrogate import Surrogate


@dataclass(frozen=True)
class AnsorOptions:
    """Options of `published:ansor`."""

    plan: int = option(64, "candidates that are measured before the surrogate is fitted (its code)", low=1, high=10_000)
    random: float = option(0.05, "share of random candidates (its code)", low=0, high=1)
    population: int = option(2048, "candidates of a generation on the surrogate (its code)", low=2, high=100_000)
    generations: int = option(4, "generations for a plan (its code)", low=1, high=1000)
    mutation: float = option(0.85, "share of children by mutation, the others by crossover (its code)", low=0, high=1)
    measured: float = option(0.2, "share of the population that begins as the best measured (its code)", low=0, high=1)
    model: bool = option(True, "search on the surrogate; else measure children of the best measured, to compare")


class Ansor(ModelSearch):
    """Evolution on a surrogate, in the style of Ansor (Zheng et al. 2020).

    Reproduced, from its public code: boosted trees that learn the speed; a population of the best measured and random
    candidates; selection in proportion to the predicted speed; children by mutation or crossover; a plan of the best
    that any generation held, and random candidates.

    Different here: trees see the indices of parameters, not features of statements; crossover draws each parameter from
    one of two parents, where Ansor draws each node of the program; the default comes first, and the first plan is
    random.

    Not reproduced: its sketches, which generate the space, and its scheduler, which shares time among operators.
    """

    Options: ClassVar[type] = AnsorOptions
    options: AnsorOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: AnsorOptions) -> None:
        super().__init__(task, budget, rng, options)
        self.surrogate = Surrogate(task.space, fitness, rng, options.model)

    def plan(self) -> NDArray:
        """Return the next plan."""
        return super().plan() if self.options.model else self._offspring()

    def _measured(self) -> NDArray[np.int64]:
        """Return the places of the best measured."""
        most = max(2, int(self.options.population * self.options.measured))
        return np.argsort(self.surrogate.costs, kind="stable")[:most]

    def _offspring(self) -> NDArray:
        """Return a plan without the surrogate: children of the best measured, in proportion to their speed."""
        places, count = self._measured(), int(self.options.plan * self.options.random)
        chances = proportions(fitness(self.surrogate.costs[places]))
        children = self._children(self.surrogate.rows[places], chances, self.options.plan - count)
        return np.concatenate([kept := self.new(children), self.random(self.options.plan - len(kept))])

    def explore(self, best: BestFound) -> None:
        """Breed generations."""
        n, known = self.options.population, self.surrogate
        measured = known.rows[self._measured()]
        rows = np.concatenate([measured, self.task.space.sample(n - len(measured), self.rng)])
        for _ in range(self.options.generations):
            values = known.predict(rows)
            best.add(rows, values)
            rows = self._children(rows, proportions(np.maximum(values, 0.0)), n)
        best.add(rows, known.predict(rows))

    def _children(self, rows: NDArray, chances: NDArray[np.float64], n: int) -> NDArray:
        mothers, fathers = rows[self.rng.choice(len(rows), (2, n), p=chances)]
        mutated = self.rng.random(n) < self.options.mutation
        children = self.moves.mutate(mothers, mutated.astype(np.int64), self.rng)
        children[~mutated] = self.moves.cross(children[~mutated], fathers[~mutated], self.rng)
        return children
