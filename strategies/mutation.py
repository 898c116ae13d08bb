"""Mutation by three operators that share the work by success: single changes, runs, and copies of a stretch."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves

from .shares import Credit, proportions

SINGLE, RUN, COPY = range(3)
_LONGEST, _TAIL = 50, 1.5
_LEAST = 0.05
_REMEMBERED, _FADING = 500, 0.95
_RETRIES = 8


class AdaptiveMutation:
    """Three mutation operators, used in proportion to their success.

    Neighbours in a problem's list of parameters tend to be neighbours in the program, and programs repeat themselves.
    So there are three operators: a single change of one parameter; a run, in which consecutive parameters take one
    value; and a copy, in which they take the values of a stretch elsewhere in the candidate. Runs and copies have 2 to
    50 parameters, drawn from a power law as in Doerr et al. 2017 ("Fast genetic algorithms").

    The share of each operator follows its recent success, by probability matching (Thierens 2005, "An adaptive pursuit
    strategy", section 2): success is a candidate that costs less than its parent.
    """

    def __init__(self, moves: Moves, rng: Generator) -> None:
        self._moves, self._rng = moves, rng
        chances = np.arange(2, _LONGEST + 1) ** -_TAIL
        self._chances = np.cumsum(chances / chances.sum())
        self._credit = Credit(3, 1.0, 2.0)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The `(3,)` shares of the operators among the next changes."""
        shares = np.maximum(proportions(self._credit.gains / self._credit.trials), _LEAST)
        return shares / shares.sum()

    def change(self, configs: NDArray, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Change in place, for each k, row `rows[k]` from movable parameter `columns[k]` on; return the operators."""
        kinds = self.draw(len(rows))
        self.apply(configs, rows, columns, kinds)
        return kinds

    def draw(self, n: int) -> NDArray[np.int64]:
        """Return `n` operators."""
        return np.searchsorted(np.cumsum(self.shares)[:-1], self._rng.random(n))

    def apply(
        self, configs: NDArray, rows: NDArray[np.int64], columns: NDArray[np.int64], kinds: NDArray[np.int64]
    ) -> None:
        """Change in place, for each k, row `rows[k]` from movable parameter `columns[k]` on by operator `kinds[k]`."""
        lengths = 2 + np.searchsorted(self._chances[:-1], self._rng.random(len(rows)))
        copies, runs = np.flatnonzero(kinds == COPY), np.flatnonzero(kinds == RUN)
        not_copied = copies[self._copy_stretches(configs, rows[copies], columns[copies], lengths[copies])]
        changed = np.concatenate([np.flatnonzero(kinds != COPY), not_copied])
        self._moves.change(configs, rows[changed], columns[changed], self._rng)
        self._moves.spread(configs, rows[runs], columns[runs], lengths[runs])

    def _copy_stretches(self, configs: NDArray, rows: NDArray, columns: NDArray, lengths: NDArray) -> NDArray[np.int64]:
        """Copy stretches to these places; return the places that stay unchanged because all stretches were equal."""
        left = np.arange(len(rows))
        for _ in range(_RETRIES):
            if not len(left):
                break
            starts = self._rng.integers(0, configs.shape[1], len(left))
            left = left[~self._moves.copy(configs, rows[left], columns[left], starts, lengths[left])]
        return left

    def learn(self, kinds: NDArray[np.int64], better: NDArray[np.bool_]) -> None:
        """Learn from the `(k,)` operators of changes, and from which of these changes cost less than their parents."""
        self._credit.learn(slice(None), np.bincount(kinds[better], minlength=3), np.bincount(kinds, minlength=3))
        if self._credit.trials.sum() > _REMEMBERED:
            self._credit.fade(_FADING)
