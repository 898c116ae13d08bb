"""Random changes of candidates that adapt to success: which operator, how many changes, and the shares of each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Space

SINGLE, RUN, COPY = range(3)
"""The operators of `AdaptiveMutation`."""

_LONGEST, _TAIL = 50, 1.5
_LEAST = 0.05
_REMEMBERED, _OPERATOR_DECAY = 500, 0.95
_RETRIES = 8

_MOST, _PARAMETERS = 32, 64
_FLOOR = 0.1
_RATE_DECAY = 0.995  # a trial counts half after 140 candidates
_PRIOR_TRIALS = 50.0  # trials with the mean gain that every number is assumed to have made


class OperatorCredit:
    """The gains and the trials of k operators, of which recent ones count more (adaptive operator selection).

    Attributes:
      gains: `(k,)` what each gained.
      trials: `(k,)` how often each was tried.
    """

    def __init__(self, k: int, gain: float = 0.0, trials: float = 0.0) -> None:
        self.gains, self.trials = np.full(k, float(gain)), np.full(k, float(trials))

    def learn(self, operator: int | slice, gain: float | NDArray, trials: float | NDArray, memory: float = 1.0) -> None:
        """Multiply what an operator had before by `memory`, and add the gain of some trials of it."""
        self.gains[operator] = memory * self.gains[operator] + gain
        self.trials[operator] = memory * self.trials[operator] + trials

    def decay(self, factor: float) -> None:
        """Multiply all gains and trials so far by a factor."""
        self.gains, self.trials = self.gains * factor, self.trials * factor


def proportions(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `(k,)` shares in proportion to rates, which are not negative; equal shares if all rates are 0.

    After long without a gain, decayed gains underflow to 0: then nothing is known of the operators any more.
    """
    total = rates.sum()
    return rates / total if total > 0 else np.full(len(rates), 1 / len(rates))


def probability_matching(weights: NDArray[np.float64], least: float, total: float = 1.0) -> NDArray[np.float64]:
    """Return `(k,)` shares in proportion to weights, each at least `least`; they add up to 1.

    From Thierens (2005, "An adaptive pursuit strategy", section 2).

    Args:
      weights: `(k,)`, not negative.
      least: at most 1 / k.
      total: the sum of the weights.
    """
    return least + (1 - least * len(weights)) * weights / total


class AdaptiveMutation:
    """Three mutation operators, used in proportion to their success.

    Neighbours in a problem's list of parameters tend to be neighbours in the program, and programs repeat themselves.
    So there are three operators: a single change of one parameter; a run, in which consecutive parameters take one
    value; and a copy, in which they take the values of another range of the candidate. Runs and copies have 2 to 50
    parameters, drawn from a power law as in Doerr et al. 2017 ("Fast genetic algorithms").

    The share of each operator follows its recent success, by probability matching (Thierens 2005, "An adaptive pursuit
    strategy", section 2): success is a candidate that costs less than its parent.
    """

    def __init__(self, moves: Moves, rng: Generator) -> None:
        self._moves, self._rng = moves, rng
        chances = np.arange(2, _LONGEST + 1) ** -_TAIL
        self._chances = np.cumsum(chances / chances.sum())
        self._credit = OperatorCredit(3, 1.0, 2.0)

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
        not_copied = copies[self._copy_ranges(configs, rows[copies], columns[copies], lengths[copies])]
        changed = np.concatenate([np.flatnonzero(kinds != COPY), not_copied])
        self._moves.change(configs, rows[changed], columns[changed], self._rng)
        self._moves.spread(configs, rows[runs], columns[runs], lengths[runs])

    def _copy_ranges(self, configs: NDArray, rows: NDArray, columns: NDArray, lengths: NDArray) -> NDArray[np.int64]:
        """Copy other ranges to these places; return the places that stay unchanged because all values were equal."""
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
            self._credit.decay(_OPERATOR_DECAY)


class MutationRate:
    """The number of changes of each candidate: 1, or 2, 4, ... or 32, at most one for every 64 parameters.

    In tasks of thousands of parameters, most changes have no effect, few gain, and those gain much. There single
    changes do not get through all parameters, and a candidate with many changes tests many at once. Everywhere else a
    single change is best. So there are only single changes if less than half of them have no effect. Else the share of
    each number follows the square of what its candidates gained; at first, and for a tenth of the candidates always,
    the shares fall with the number as a power law (Doerr et al. 2017, "Fast genetic algorithms").

    Args:
      parameters: that can change.
      rng: draws the numbers.
    """

    def __init__(self, parameters: int, rng: Generator) -> None:
        most = max(1, min(_MOST, parameters // _PARAMETERS))
        self._numbers = 2 ** np.arange(int(np.log2(most)) + 1)
        self._rng, self._credit = rng, OperatorCredit(len(self._numbers))
        self._single = self._idle = 0  # single changes, and those of them without effect
        tail = 1 / self._numbers
        self._tail = tail / tail.sum()

    @property
    def is_sparse(self) -> bool:
        """True if at least half of the single changes have no effect, and until the cost of one is known."""
        return 2 * self._idle >= self._single

    @property
    def shares(self) -> NDArray[np.float64]:
        """The shares of the numbers; before anything gained they follow the power law."""
        gains, trials = self._credit.gains, self._credit.trials
        mean = gains.sum() / max(1.0, trials.sum())
        if not mean > 0:
            return self._tail
        rates = (gains + _PRIOR_TRIALS * mean * self._tail * len(self._tail)) / (trials + _PRIOR_TRIALS)
        squares = (rates / rates.max()) ** 2
        return _FLOOR * self._tail + (1 - _FLOOR) * squares / squares.sum()

    def draw(self, n: int) -> NDArray[np.int64]:
        """Return the numbers of changes of `n` candidates."""
        if not self.is_sparse:
            return np.ones(n, np.int64)
        return self._numbers[np.searchsorted(np.cumsum(self.shares)[:-1], self._rng.random(n))]

    def learn(self, numbers: NDArray[np.int64], gains: NDArray[np.float64], idle: NDArray[np.bool_]) -> None:
        """Learn what `(k,)` candidates gained, 0 or more, which cost the same as before, and how many changes each had.

        Numbers of changes are rounded down to a power of two.
        """
        self._single += int((numbers == 1).sum())
        self._idle += int(((numbers == 1) & idle).sum())
        arms, k = np.log2(numbers).astype(int), len(self._numbers)
        self._credit.decay(_RATE_DECAY ** len(numbers))
        self._credit.learn(slice(None), np.bincount(arms, gains, k), np.bincount(arms, minlength=k))


class AdaptiveChanges:
    """Random changes whose operators (`AdaptiveMutation`) and numbers (`MutationRate`) adapt to success.

    Attributes:
      movable: the parameters that can change.
      mutation: the operators.
      rate: how often an operator is used.
    """

    def __init__(self, moves: Moves, rng: Generator) -> None:
        self.movable, self._rng = moves.movable, rng
        self.mutation, self.rate = AdaptiveMutation(moves, rng), MutationRate(len(moves.movable), rng)

    def change(self, configs: NDArray, single: Callable[[int], NDArray[np.int64]] | None = None) -> NDArray[np.int64]:
        """Change `(n, d)` candidates in place; return the operator of each, and how often it was used, `(2, n)`.

        Args:
          single: returns the parameters of so many single changes; by default they are random, as all others are.
        """
        n = len(configs)
        operators, numbers = self.mutation.draw(n), self.rate.draw(n)
        rows = np.repeat(np.arange(n), numbers)
        columns = self.movable[self._rng.integers(0, len(self.movable), len(rows))]
        if single is not None:
            alone = numbers[rows] == 1
            columns[alone] = single(int(alone.sum()))
        self.mutation.apply(configs, rows, columns, operators[rows])
        return np.stack([operators, numbers])

    def learn(
        self, changes: NDArray[np.int64], before: float | NDArray[np.float64], values: NDArray[np.float64]
    ) -> None:
        """Learn from `(2, n)` changes, the costs of what they changed, and the `(n,)` costs after them."""
        operators, numbers = changes
        before = np.broadcast_to(before, values.shape)
        one = numbers == 1  # of several changes it is not known which one paid
        self.mutation.learn(operators[one], values[one] < before[one])
        self.rate.learn(numbers, relative_gains(before, values), np.isfinite(before) & (values == before))


def relative_gains(cost: float | NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by which share each of `(k,)` costs is below another, between 0 and 1; 1 if only the other is infinite."""
    cost = np.broadcast_to(cost, values.shape)
    with np.errstate(invalid="ignore"):
        gains = cost - values
    known = np.isfinite(gains) & (gains > 0)
    shares = np.divide(gains, np.abs(cost), out=np.ones(len(values)), where=known & (cost != 0))
    return np.where(known, np.minimum(shares, 1.0), np.isinf(cost) & np.isfinite(values))


class SingleChanges:
    """The single changes of any candidate of a space, numbered from 0, those of a parameter one after another.

    Attributes:
      starts: `(d + 1,)` the changes of parameter i are `starts[i]` to `starts[i + 1]`, that one excluded.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._last = np.arange(len(space))  # in a permutation its last slot, else the parameter itself
        for group in space.permutations:
            start, stop = space.slots[group]
            self._last[start:stop] = stop - 1
        self._swaps = np.isin(space.groups, sorted(space.permutations)) & (space.groups >= 0)
        counts = np.where(self._swaps, self._last - np.arange(len(space)), space.sizes - 1)
        self.starts = np.concatenate([[0], np.cumsum(counts)])

    def __len__(self) -> int:
        """Return the number of changes."""
        return int(self.starts[-1])

    def rows(self, config: NDArray, changes: NDArray[np.int64]) -> NDArray:
        """Return the `(k, d)` changed candidates, without those that the constraints forbid."""
        columns = np.searchsorted(self.starts, changes, side="right") - 1
        steps = 1 + changes - self.starts[columns]
        rows, k = np.repeat(config[None], len(changes), axis=0), np.arange(len(changes))
        swapped = self._swaps[columns]
        rows[k, columns] = (config[columns] + steps) % self._space.sizes[columns]
        others = columns[swapped] + steps[swapped]
        rows[k[swapped], columns[swapped]], rows[k[swapped], others] = config[others], config[columns[swapped]]
        return rows[self._space.allowed(rows)]

    def of(self, config: NDArray, columns: NDArray[np.int64]) -> NDArray:
        """Return the `(k, d)` candidates with a change of one of some parameters."""
        ranges = [np.arange(self.starts[i], self.starts[i + 1]) for i in columns]
        return self.rows(config, np.concatenate([np.empty(0, np.int64), *ranges]))
