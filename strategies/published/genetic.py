"""Genetic algorithms: Tensor Comprehensions on measured candidates, Ansor on a surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Task, option

from ..changes import proportions
from .model_search import BestFound, ModelSearch, Surrogate
from .planned import Planned, fitness

_RETRIES, _FEWEST = 5, 3


@dataclass(frozen=True)
class TensorComprehensionsOptions:
    """Options of `published:tensor-comprehensions`."""

    population: int = option(100, "candidates of a generation (default of its code)", low=4, high=100_000)
    elites: int = option(10, "best candidates that enter the next generation unchanged (its code)", low=0, high=99_999)
    crossover: float = option(0.8, "share of children with three parents (its code)", low=0, high=1)
    mutation: float = option(0.07, "chance that a parameter of a child is drawn anew (its code)", low=0, high=1)


class TensorComprehensions(Planned):
    """Evolution on measurements, in the style of Tensor Comprehensions (Vasilache et al. 2018).

    Reproduced, from `genetic_search.cc` of its repository: a first generation of the default and random candidates;
    selection in proportion to sigma-scaled speed; uniform crossover of three parents; mutation of every parameter; the
    elites; a generation that is drawn anew, but for the best, if fewer than three candidates run.

    Different here: elites are not measured again; a child that was proposed before is changed once more, up to five
    times; of the three parents the first gives half of the parameters, the others a quarter each.

    Not reproduced: its space of polyhedral mappings and its code generator.
    """

    Options: ClassVar[type] = TensorComprehensionsOptions
    options: TensorComprehensionsOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: TensorComprehensionsOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._rows, self._costs = self.none, np.empty(0)  # the last generation, best first

    def begin(self) -> NDArray:
        """Return the rest of the first generation."""
        return self.task.space.sample(self.options.population - 1, self.rng)

    def plan(self) -> NDArray:
        """Return the children of the last generation."""
        if len(self._rows) < _FEWEST:
            return self.random(self.options.population - len(self._rows))
        children = self._varied(self._bred(self.options.population - len(self._elites())))
        return children if len(children) else self.archive.others(self.options.population)

    def _elites(self) -> NDArray:
        return self._rows[: min(self.options.elites, self.options.population - 1)]

    def _bred(self, n: int) -> NDArray:
        """Return `n` children before mutation."""
        places = self.rng.choice(len(self._rows), (3, n), p=proportions(_sigma_scaled(fitness(self._costs))))
        children = self._rows[places[0]]
        crossed = np.flatnonzero(self.rng.random(n) < self.options.crossover)
        others = self.moves.cross(self._rows[places[1, crossed]], self._rows[places[2, crossed]], self.rng)
        children[crossed] = self.moves.cross(children[crossed], others, self.rng)
        return children

    def _varied(self, children: NDArray) -> NDArray:
        """Return mutated children that were never proposed."""
        counts = self.rng.binomial(len(self.moves.movable), self.options.mutation, len(children))
        children = self.moves.mutate(children, counts, self.rng)
        found = []
        for _ in range(1 + _RETRIES):
            fresh = self.archive.claim(children, len(children))
            found.append(children[fresh])
            children = np.delete(children, fresh, axis=0)
            if not len(children):
                break
            children = self.moves.mutate(children, np.ones(len(children), np.int64), self.rng)
        return np.concatenate(found)

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Replace the generation by the elites and the children that run."""
        rows = np.concatenate([self._elites(), configs])
        costs = np.concatenate([self._costs[: len(self._elites())], values])
        order = np.argsort(costs, kind="stable")
        order = order[np.isfinite(costs[order])]
        self._rows, self._costs = rows[order], costs[order]

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Take the candidates of another strategy into the generation."""
        super().observe(configs, values)
        order = np.argsort(costs := np.concatenate([self._costs, values]), kind="stable")[: self.options.population]
        order = order[np.isfinite(costs[order])]
        self._rows, self._costs = np.concatenate([self._rows, configs])[order], costs[order]


def _sigma_scaled(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far scores lie above two standard deviations below their mean; 0 for those below."""
    return np.maximum(scores - (scores.mean() - 2 * scores.std()), 0.0)


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
        return np.concatenate([fresh := self.new(children), self.random(self.options.plan - len(fresh))])

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
        return bred(mothers, fathers, self.options.mutation, self.moves, self.rng)


def bred(mothers: NDArray, fathers: NDArray, mutation: float, moves: Moves, rng: Generator) -> NDArray:
    """Return a child of each two parents: by a chance a mutation of the mother, else a crossover."""
    mutated = rng.random(len(mothers)) < mutation
    children = moves.mutate(mothers, mutated.astype(np.int64), rng)
    children[~mutated] = moves.cross(children[~mutated], fathers[~mutated], rng)
    return children
