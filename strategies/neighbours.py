"""Where the candidates of annealing come from: the interface, and the source that draws at random."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from bbo_suite import Moves, Task

from .archive import Archive
from .mutation import AdaptiveMutation
from .strength import Strength, relative_gains

_ATTEMPTS = 5
_LIKELY = 0.5

Chances = Callable[[NDArray, NDArray], NDArray[np.float64]]
"""Takes a `(d,)` state and `(n, d)` changes of it; returns the `(n,)` probabilities that these run."""


class Neighbours(ABC):
    """A source of changes of a state that learns from what they cost."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The median cost difference of a change, in the unit of the costs; 0 until one is known."""

    @property
    def logarithmic(self) -> bool:
        """True if costs differ by many orders of magnitude: their logarithms are compared, and `scale` is of these."""
        return False

    @property
    def sparse(self) -> bool:
        """False if it is known that most changes have an effect."""
        return True

    @abstractmethod
    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return up to `n` changes of a `(d,)` state, `(k, d)`; they count as proposed."""

    @abstractmethod
    def learn(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn from the `(k,)` costs of the changes that were drawn last, given the cost of the state they change."""

    def claim(self, config: NDArray) -> bool:
        """Return whether a `(d,)` candidate may be proposed; if so it counts as proposed."""
        return True

    def exclude(self, configs: NDArray) -> None:  # noqa: B027 - not every source remembers what was proposed
        """Count `(k, d)` candidates as proposed."""

    def others(self, n: int) -> NDArray | None:
        """Return up to `n` other candidates, `(k, d)`, for when no change is left; None if a change is always left."""
        return None

    def chances(self, state: NDArray, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` probabilities that `(n, d)` changes of a state run."""
        return np.ones(len(configs))


class RandomNeighbours(Neighbours):
    """Random changes: single ones over all parameters in shuffled turns, and several at once at random places.

    Memory: one shuffled list of the parameters, and what the archive holds.

    Args:
      task: whose space is searched.
      archive: the candidates that may not be proposed again; None if repeats are allowed.
      rng: draws the changes.
      chances: predicts which changes run; a change that is more likely to fail than to run is not drawn.
    """

    def __init__(self, task: Task, archive: Archive | None, rng: Generator, chances: Chances | None = None) -> None:
        moves = Moves(task.space)
        self.mutation, self.strength = AdaptiveMutation(moves, rng), Strength(len(moves.movable), rng)
        self._movable, self._archive, self._rng, self._chances = moves.movable, archive, rng, chances
        self._turns = np.empty(0, np.int64)
        self._operators = self._numbers = np.zeros(0, np.int64)
        self._differences = CostDifferences()

    @property
    def scale(self) -> float:
        """The median cost difference of a change."""
        return self._differences.median

    @property
    def logarithmic(self) -> bool:
        """True if a change has multiplied the cost by a million."""
        return self._differences.logarithmic

    @property
    def sparse(self) -> bool:
        """True if at least half of the single changes cost nothing, and until the cost of one is known."""
        return self.strength.is_sparse

    @property
    def drawn(self) -> int:
        """How many changes were drawn last."""
        return len(self._operators)

    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return up to `n` changes of a state; fewer where new ones are hard to find."""
        changes, drawn = [state[None][:0]], [np.zeros((2, 0), np.int64)]
        for _ in range(_ATTEMPTS if len(self._movable) else 0):
            missing = n - sum(map(len, changes))
            if not missing:
                break
            changed, how = self._changed(state, missing)
            likely = np.flatnonzero(self.chances(state, changed) > _LIKELY)
            new = likely[self.claim_rows(changed[likely], missing)]
            changes.append(changed[new])
            drawn.append(how[:, new])
        self._operators, self._numbers = np.concatenate(drawn, axis=1)
        return np.concatenate(changes)

    def _changed(self, state: NDArray, n: int) -> tuple[NDArray, NDArray[np.int64]]:
        """Return `n` changes of a state, and the operator of each and how often it was used, `(2, n)`."""
        changed = np.repeat(state[None], n, axis=0)
        operators, numbers = self.mutation.draw(n), self.strength.draw(n)
        rows = np.repeat(np.arange(n), numbers)
        columns = self._movable[self._rng.integers(0, len(self._movable), len(rows))]  # many at once take nobody's turn
        single = numbers[rows] == 1
        columns[single] = self._columns(int(single.sum()))
        self.mutation.apply(changed, rows, columns, operators[rows])
        return changed, np.stack([operators, numbers])

    def _columns(self, n: int) -> NDArray[np.int64]:
        """Return the next parameters to change: each has its turn before any is repeated."""
        while len(self._turns) < n:
            self._turns = np.concatenate([self._turns, self._rng.permutation(self._movable)])
        columns, self._turns = self._turns[:n], self._turns[n:]
        return columns

    def learn(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn which operators pay and how much changes differ in cost."""
        if len(self._movable) and len(self._operators) == len(values):  # else these candidates are not changes
            one = self._numbers == 1  # of several changes it is not known which one paid
            self.mutation.learn(self._operators[one], values[one] < cost)
            self.strength.learn(self._numbers, relative_gains(cost, values), np.isfinite(cost) & (values == cost))
        self.compare(cost, values)

    def compare(self, cost: float, values: NDArray[np.float64]) -> None:
        """Learn how much the `(k,)` costs of changes differ from that of the state."""
        self._differences.learn(cost, values)

    def claim(self, config: NDArray) -> bool:
        """Return whether a candidate may be proposed; if so it counts as proposed."""
        return len(self.claim_rows(config[None], 1)) > 0

    def claim_rows(self, configs: NDArray, n: int) -> NDArray[np.int64]:
        """Return the places of the first `n` rows that may be proposed; these count as proposed."""
        return self._archive.claim(configs, n) if self._archive else np.arange(min(n, len(configs)))

    def exclude(self, configs: NDArray) -> None:
        """Count candidates as proposed."""
        if self._archive:
            self._archive.add(self._archive.digests(configs))

    def others(self, n: int) -> NDArray | None:
        """Return candidates that were never proposed, on a walk over the whole space."""
        return self._archive.others(n) if self._archive else None

    def chances(self, state: NDArray, configs: NDArray) -> NDArray[np.float64]:
        """Return the probabilities that changes of a state run; 1 without a predictor."""
        return self._chances(state, configs) if self._chances else super().chances(state, configs)


class CostDifferences:
    """Cost differences between a state and its changes, without zeros; only the first 200 or more are kept.

    If one of these changes multiplies the cost by a million or more, differences are of logarithms from then on: some
    costs then stand for failures, and their differences say nothing about others.

    Attributes:
      logarithmic: true if they are.
    """

    _ENOUGH, _FAR = 200, 1e6

    def __init__(self) -> None:
        self._known: list[NDArray[np.float64]] = []
        self._logs: list[NDArray[np.float64]] = []
        self.logarithmic = False

    def learn(self, cost: float, values: NDArray[np.float64]) -> None:
        """Add the `(k,)` costs of changes of a state, given its own cost, until there are enough."""
        if sum(map(len, self._known)) < self._ENOUGH and np.isfinite(cost):
            differences = np.abs(values - cost)
            known = differences[np.isfinite(differences) & (differences > 0)]
            if len(known):  # empty entries would pile up on a plateau and slow each call down
                self._known.append(known)
                self._learn_logs(cost, values[np.isfinite(differences) & (differences > 0)])

    def _learn_logs(self, cost: float, values: NDArray[np.float64]) -> None:
        if cost > 0 and values.min() > 0:
            self.logarithmic |= bool(values.max() / cost >= self._FAR)
            self._logs.append(np.abs(logarithms(values) - logarithms(cost)))

    @property
    def median(self) -> float:
        """The median; 0 while there is none."""
        known = np.concatenate([np.empty(0), *(self._logs if self.logarithmic else self._known)])
        return float(np.median(known)) if len(known) else 0.0


def logarithms(costs: ArrayLike) -> NDArray[np.float64]:
    """Return the logarithms of costs; a cost of 0 counts as a tiny one."""
    return np.log(np.maximum(costs, np.finfo(np.float64).tiny))
