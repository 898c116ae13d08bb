"""Iterated local search with partition crossover on the declared graph of interactions."""

from __future__ import annotations

from collections.abc import Generator as Search
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Level, Task, option

from ..changes import SingleChanges
from ..graphs import differing, pairs
from .planned import Climb, Measured, Stepwise, best_of, lacking

_ATTEMPTS = 100


@dataclass(frozen=True)
class IlsPxOptions:
    """Options of `published:ils-px`."""

    kick: int = option(10, "parameters that a kick changes (ours)", low=1, high=10_000)


class IlsPx(Stepwise):
    """Iterated local search with partition crossover, in the style of Whitley's line of work (Whitley et al. 2009).

    Reproduced, from the papers: climb by single changes; kick a few parameters; climb again, and try only parameters
    that changed or that interact with one that changed; then cross the old and the new optimum. The parameters in which
    they differ fall into components that no interaction joins, and the better of each component is taken.

    Different here: a component's gain is not computed but measured, with one candidate each, and so is the mixture.

    Not reproduced: the costs of terms, from which the papers know the gain of every change without a measurement.
    """

    Options: ClassVar[type] = IlsPxOptions
    level: ClassVar[Level] = Level.STRUCTURE
    options: IlsPxOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: IlsPxOptions) -> None:
        if task.structure is None:
            raise lacking(task, "published:ils-px needs the declared interactions of parameters", "interactions")
        self._structure = task.structure
        self._pairs = pairs(task.structure.starts, task.structure.neighbours)
        super().__init__(task, budget, rng, options)
        self._changes = SingleChanges(task.space)

    def steps(self, rows: NDArray, costs: NDArray[np.float64]) -> Search[NDArray, Measured, None]:
        """Climb, then kick, climb again and cross, until every candidate was proposed."""
        best = yield from self._climb((rows[:1], costs[:1]), self.moves.movable)
        while len(kicked := self._kicked(best[0])):
            state = yield kicked
            found = yield from self._climb(state, self._near(np.flatnonzero(state[0][0] != best[0][0])))
            best = yield from self.cross(best, found)

    def _kicked(self, row: NDArray) -> NDArray:
        """Return one new candidate with several random changes."""
        count = np.array([min(self.options.kick, max(1, len(self.moves.movable)))])
        for _ in range(_ATTEMPTS):
            if len(kicked := self.new(self.moves.mutate(row, count, self.rng))):
                return kicked
        return self.random(1)

    def _climb(self, state: Measured, columns: NDArray[np.int64]) -> Climb:
        """Set one parameter after another to its best value, until no change of those that may gain does."""
        waiting = dict.fromkeys(self.rng.permutation(columns).tolist())
        while waiting:
            column = next(iter(waiting))
            del waiting[column]
            if len(children := self.new(self._changes.of(state[0][0], np.array([column])))):
                better = best_of(state, (yield children))
                if better is not state:
                    changed = np.flatnonzero(better[0][0] != state[0][0])
                    waiting.update(dict.fromkeys(self.rng.permutation(self._near(changed)).tolist()))
                    state = better
        return state

    def _near(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the movable parameters that are among some or interact with one of them."""
        starts, others = self._structure.starts, self._structure.neighbours
        near = np.concatenate([columns, *(others[starts[i] : starts[i + 1]] for i in columns)])
        return np.intersect1d(near, self.moves.movable)

    def cross(self, best: Measured, found: Measured) -> Climb:
        """Measure each component of the new optimum in the old one, then all that gain together."""
        labels = differing(*self._pairs, best[0][0] != found[0][0])
        masks = labels == np.arange(labels.max() + 1)[:, None]
        winner = best_of(best, found)
        if len(masks) > 1 and len(rows := self._mixtures(best[0], found[0], masks)):
            rows, costs = yield rows
            winner, gains = best_of(winner, (rows, costs)), rows[costs < best[1][0]]
            mixed = np.where((gains != best[0]).any(axis=0), found[0], best[0])
            if len(mixed := self._mixtures(mixed, mixed, np.zeros((1, mixed.shape[1]), bool))):
                winner = best_of(winner, (yield mixed))
        return winner

    def _mixtures(self, best: NDArray, found: NDArray, masks: NDArray[np.bool_]) -> NDArray:
        """Return the new and allowed ones of the candidates that take some parameters from another."""
        rows = np.where(masks, found, best)
        return self.new(rows[self.task.space.allowed(rows)])
