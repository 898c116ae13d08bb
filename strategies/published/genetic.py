"""Evolution on measurements: generations of a genetic algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task, option

from ..adaptive_moves import proportions
from .planned import Planned, fitness

_RETRIES, _FEWEST = 5, 3


@dataclass(frozen=True)
class GeneticOptions:
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

    Options: ClassVar[type] = GeneticOptions
    options: GeneticOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: GeneticOptions) -> None:
        self._rows: NDArray = task.default[None][:0].astype(task.space.dtype)  # the last generation, best first
        self._costs = np.empty(0)
        super().__init__(task, budget, rng, options)

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
