"""Annealing on a pool of candidates in which groups of parameters change together: GroupTuner."""

from __future__ import annotations

from collections.abc import Generator as Search
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Level, option

from .planned import Measured, Stepwise

_ATTEMPTS = 100


@dataclass(frozen=True)
class GroupTunerOptions:
    """Options of `published:grouptuner`."""

    pool: int = option(10, "candidates whose groups are changed (its code)", low=1, high=10_000)
    groups: int = option(15, "runs of adjacent parameters, if the problem declares no interactions (its code)", low=1)
    change: float = option(0.5, "chance that a parameter of the group changes (its code)", low=0, high=1)
    temperature: float = option(0.05, "initial temperature, as a share of the cost (its code)", low=0, high=100)
    cooling: float = option(1000.0, "initial temperature / final temperature (its code)", low=1, high=1e9)


class GroupTuner(Stepwise):
    """Annealing that changes groups of flags, in the style of GroupTuner (Gao et al. 2025, GCC).

    Reproduced, from its public code: a pool of ten candidates, the default and nine changes of it; one candidate at a
    time, a change of a random one of the pool; a change draws a group and flips each of its flags with a chance of a
    half, and another group if the result is not new; the new candidate takes the place of the worst of the pool if it
    is better, or by the rule of Metropolis on the relative difference, while the temperature falls geometrically over
    the budget.

    Different here: a group is a parameter and those that it is declared to interact with, or, without a declaration,
    one of 15 runs of adjacent parameters (GCC's flags are in the order of their names), where the original has 15
    groups of GCC's flags by what its documentation says of them; parameters of more values take another one; a
    candidate is new if it was never proposed, where the original compares the machine code.

    Not reproduced: its options of GCC, and that a candidate that fails costs nothing.
    """

    Options: ClassVar[type] = GroupTunerOptions
    level: ClassVar[Level] = Level.STRUCTURE
    options: GroupTunerOptions

    def steps(self, rows: NDArray, costs: NDArray[np.float64]) -> Search[NDArray, Measured, None]:
        """Change one of the pool after another, until every candidate was proposed."""
        if len(changes := np.concatenate([self._child(rows) for _ in range(self.options.pool - 1)] or [rows[:0]])):
            found, values = yield changes
            rows, costs = np.concatenate([rows, found]), np.concatenate([costs, values])
        spent, runs = len(costs), np.isfinite(costs)
        rows, costs = (rows[runs], costs[runs]) if runs.any() else (rows, costs)
        while len(child := self._child(rows[[self.rng.integers(0, len(rows))]])):
            found, values = yield child
            worst = int(np.argmax(costs))
            if values[0] < costs[worst] or self._accepts(values[0], costs[worst], spent / self.budget):
                rows[worst], costs[worst] = found[0], values[0]
            spent += 1

    def _accepts(self, cost: float, worst: float, share: float) -> bool:
        if not np.isfinite(cost):
            return False
        temperature = self.options.temperature * self.options.cooling**-share
        return bool(self.rng.random() < np.exp(-(cost - worst) / (abs(worst) or 1.0) / max(temperature, 1e-12)))

    def _child(self, row: NDArray) -> NDArray:
        """Return a new change of a `(1, d)` candidate, or a random one if none is found."""
        for _ in range(_ATTEMPTS):
            row = self._changed(row)
            if len(new := self.new(row)):
                return new
        return self.random(1)

    def _changed(self, row: NDArray) -> NDArray:
        """Change a random group."""
        child, group = row.copy(), self._group()
        columns = group[self.rng.random(len(group)) < self.options.change]
        self.moves.change(child, np.zeros(len(columns), np.int64), columns, self.rng)
        return child

    def _group(self) -> NDArray[np.int64]:
        """Return the movable parameters of a random group."""
        movable, structure = self.moves.movable, self.task.structure
        if not len(movable):
            return movable
        if structure is None or not len(structure.neighbours):
            runs = np.array_split(movable, min(self.options.groups, len(movable)))
            return runs[int(self.rng.integers(len(runs)))]
        i = int(self.rng.choice(movable))
        near = structure.neighbours[structure.starts[i] : structure.starts[i + 1]]
        return np.intersect1d(np.append(near, i), movable)
