"""Simulated annealing on small batches: several changes of one state at once, and the accepted ones merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Strategy, Task, option

from .archive import Archive, is_small
from .changes import Changes

_BATCH = 20  # more changes of one state know less of each other; fewer gain little and cost more a candidate
_ATTEMPTS = 5
_SURE = 0.9  # of a merged state: with one that fails its whole batch is lost
_SWEEPS = 10  # in how many turns of all parameters the full heat pays


@dataclass(frozen=True)
class AnnealingOptions:
    """Options of `annealing`."""

    heat: float = option(0.2, "initial temperature, in median cost differences of a change", low=0, high=100)
    cooling: float = option(300.0, "initial temperature / final temperature", low=1, high=1e9)


class Annealing(Strategy):
    """Simulated annealing (Kirkpatrick et al. 1983) on batches of at most 20.

    Every candidate of a batch is one change of the same state (`Changes`), over all parameters in shuffled turns. Each
    change is accepted or not by the rule of Metropolis, and the accepted ones that touch different parameters are
    merged into the next state, whose cost is measured with the next batch. Where merging turns out worse than the rule
    allows, the next merges are halved, and grow again with success. With a batch of one this is plain annealing.

    The temperature falls geometrically over the budget, from a multiple of the median cost difference of the first
    changes, those without effect aside. Where the budget allows fewer than 10 turns of all parameters there is no time
    to recover from bad changes, and the temperature is lower by the square of what is missing.

    In a space of less than 100 budgets no candidate is proposed twice; where new changes of the state are used up, any
    candidate that is left comes next.

    Memory: a batch and one shuffled list of the parameters; in such a small space also 16 characters a candidate.
    """

    Options: ClassVar[type] = AnnealingOptions
    options: AnnealingOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: AnnealingOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._moves = Moves(task.space)
        self._changes, self._kinds = Changes(self._moves, rng), np.zeros(0, np.int64)
        self._archive = Archive(task.space, rng) if self._remembers() else None
        self._state: NDArray = task.default.astype(task.space.dtype)
        self._cost = np.inf
        self._next: NDArray | None = self._state  # the merged state, still to be measured
        self._turns = np.empty(0, np.int64)
        self._told, self._temperature = 0, 0.0
        self._differences: list[NDArray] = []
        self._most = 1 << 20

    def _remembers(self) -> bool:
        """Is this a task on which no candidate is proposed twice?"""
        return is_small(self.task, self.budget)

    def ask(self, n: int) -> NDArray:
        """Return the state if its cost is not known yet, and changes of it, 20 candidates or fewer.

        None only where the whole space was proposed.
        """
        n = min(n, _BATCH)
        if self._next is not None and not len(self._claimed(self._next[None], 1)):
            self._next = None
        if self._next is None:
            configs = self._changed(self._state, n)
        else:
            configs = np.concatenate([self._next[None], self._changed(self._next, n - 1)])
        return self._archive.others(n) if self._archive and not len(configs) else configs

    def _changed(self, state: NDArray, n: int) -> NDArray:
        """Return `n` changes of a state, and remember their kinds; fewer where new ones are hard to find."""
        found, kinds = [state[None][:0]], [np.zeros(0, np.int64)]
        for _ in range(_ATTEMPTS if len(self._moves.movable) else 0):
            left = n - sum(map(len, found))
            if not left:
                break
            changed = np.repeat(state[None], left, axis=0)
            drawn = self._changes.change(changed, np.arange(left), self._columns(left))
            sound = np.flatnonzero(self._sound(state, changed))
            new = sound[self._claimed(changed[sound], left)]
            found.append(changed[new])
            kinds.append(drawn[new])
        self._kinds = np.concatenate(kinds)
        return np.concatenate(found)

    def _sound(self, state: NDArray, changed: NDArray, chance: float = 0.5) -> NDArray[np.bool_]:
        """Return which of `(n, d)` changes of a state run with such a chance: all, for all that annealing knows."""
        return np.ones(len(changed), bool)

    def _claimed(self, configs: NDArray, n: int) -> NDArray[np.int64]:
        """Return up to `n` of the rows that may be proposed; they count as proposed."""
        return self._archive.claim(configs, n) if self._archive else np.arange(min(n, len(configs)))

    def _columns(self, n: int) -> NDArray[np.int64]:
        """Return the next parameters to change: each gets its turn before any comes again."""
        while len(self._turns) < n:
            self._turns = np.concatenate([self._turns, self.rng.permutation(self._moves.movable)])
        columns, self._turns = self._turns[:n], self._turns[n:]
        return columns

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Accept or refuse the merged state, then each change of it, and merge what was accepted."""
        self._told += len(values)
        self._cool()
        base, cost = self._state, self._cost
        if self._next is not None:
            base, cost = configs[0], float(values[0])
            worse = cost > self._cost and not self._accepts(np.array([cost - self._cost]))[0]
            self._most = max(1, self._most // 2) if worse else self._most * 2
            if not worse:
                self._state, self._cost = base.copy(), cost
            self._next, configs, values = None, configs[1:], values[1:]
        self._learn(base, cost, configs, values)
        reference = min(cost, self._cost) if np.isinf(cost) else cost
        self._merge(base, cost, configs, values, self._accepts(values - reference) if np.isfinite(reference) else None)

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let time pass, and go on from a candidate of others that is better than the state."""
        self._told += len(values)
        if self._archive:
            self._archive.add(self._archive.digests(configs))
        best = int(np.argmin(values))
        if values[best] < self._cost:
            self._state, self._cost, self._next = configs[best].copy(), float(values[best]), None

    def _merge(
        self, base: NDArray, cost: float, configs: NDArray, values: NDArray, accepted: NDArray[np.bool_] | None
    ) -> None:
        """Set the next state: changes of `base` in the order of their costs, as long as they touch other parameters."""
        chosen = np.flatnonzero(np.isfinite(values) if accepted is None else accepted)
        chosen = chosen[np.argsort(values[chosen], kind="stable")]
        if not len(chosen) and np.isinf(self._cost) and len(configs):
            self._state = configs[self.rng.integers(len(configs))].copy()  # all failed so far: wander on
        if accepted is None or cost > self._cost:  # from a base that was refused, only the best change can be taken
            chosen = chosen[:1]
            if len(chosen) and not self._accepts(values[chosen] - self._cost)[0]:
                return
        if len(chosen):
            self._state, self._cost = configs[chosen[0]].copy(), float(values[chosen[0]])
        merged, touched, taken = self._state.copy(), self._state != base, 1
        for i in chosen[1 : self._most]:
            changed = configs[i] != base
            joined = np.where(changed, configs[i], merged)
            if not (changed & touched).any() and self._sound(merged, joined[None], _SURE)[0]:
                merged, touched, taken = joined, touched | changed, taken + 1
        if taken > 1 and bool(self.task.space.allowed(merged[None])[0]):
            self._next = merged

    def _accepts(self, differences: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Apply the rule of Metropolis to `(k,)` cost differences; nan, from inf to inf, is a step among failures."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            chance = np.exp(-differences / self._temperature) if self._temperature > 0 else differences <= 0
        return np.isnan(differences) | (differences <= 0) | (self.rng.random(len(differences)) < chance)

    def _learn(self, base: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn from changes of `base`: which kinds pay, and, until there are enough, their scale of costs."""
        if len(self._moves.movable) and len(self._kinds) == len(values):  # else they are no changes of the state
            self._changes.learn(self._kinds, values < cost)
        if sum(map(len, self._differences)) < 200 and np.isfinite(cost):
            differences = np.abs(values - cost)
            known = differences[np.isfinite(differences) & (differences > 0)]
            if len(known):  # a list that grows on a plateau would make each candidate dearer than the one before
                self._differences.append(known)

    @property
    def _scale(self) -> float:
        """The median cost difference of a change; 0 while there is none."""
        known = np.concatenate([np.empty(0), *self._differences])
        return float(np.median(known)) if len(known) else 0.0

    def _cool(self) -> None:
        turns = self.budget / max(1, len(self._moves.movable))
        start = self.options.heat * min(1.0, turns / _SWEEPS) ** 2 * self._scale
        self._temperature = start * self.options.cooling ** -(self._told / self.budget)
