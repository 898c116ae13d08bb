"""Proposals: the values that they set, how some are chosen, which are new, and tests of many values at once."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Moves, Space, Task

VALUES = 64
"""The number of values of a parameter that are distinguished; see `ParameterValues`."""
FACTS = 4
"""Numbers that describe a proposal as a whole; see `Proposals`."""
_TOLERANCE = 2.0  # a group ends where preferences are this far below those of its first parameter
_HOPELESS = -4.0  # no value is tried whose preference is this far below that of the default
_LEAST = 0.3  # nor a group of which fewer values are expected to pay


class ParameterValues:
    """Every value of every parameter that can change.

    A parameter with more than `VALUES` values has `VALUES` bins of adjacent values instead.

    Attributes:
      parameter, bin: `(c,)` the parameter of each value, and its number among the values of that parameter.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        movable = Moves(space).movable
        self._bins = np.zeros(len(space), np.int64)
        self._bins[movable] = np.minimum(space.sizes[movable], VALUES)
        self._first = np.cumsum(self._bins) - self._bins
        self.parameter = np.repeat(np.arange(len(space)), self._bins)
        self.bin = np.arange(len(self.parameter)) - self._first[self.parameter]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.parameter)

    def places(self, columns: NDArray[np.int64], values: NDArray) -> NDArray[np.int64]:
        """Return the places in the list of the given values of the given parameters."""
        return self._first[columns] + values.astype(np.int64) * self._bins[columns] // self._space.sizes[columns]

    def index(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the value at each place; of a bin, its first."""
        columns = self.parameter[places]
        return -(-self.bin[places] * self._space.sizes[columns] // self._bins[columns])

    def state(self, row: NDArray, default: NDArray) -> NDArray[np.float32]:
        """Return `(c, 4)`: 1 for the candidate's value, 1 for the default's; for scales, the step and its length."""
        current, usual = self._is(row), self._is(default)
        scale = self._space.kinds[self.parameter] == Kind.SCALE
        last = np.maximum(self._bins[self.parameter] - 1, 1)
        step = np.where(scale, (self.bin - self.bin[current][self._order]) / last, 0.0)
        return np.column_stack([current, usual, step, np.abs(step)]).astype(np.float32)

    def _is(self, row: NDArray) -> NDArray[np.bool_]:
        """Return `(c,)` booleans: true for the values of the row."""
        columns = np.flatnonzero(self._bins)
        has = np.zeros(len(self), bool)
        has[self.places(columns, row[columns])] = True
        return has

    @property
    def _order(self) -> NDArray[np.int64]:
        """For each value the number of its parameter among those that can change."""
        return (np.cumsum(self._bins > 0) - 1)[self.parameter]


class Proposals(NamedTuple):
    """The k proposals of one batch, as the e values that they set.

    Attributes:
      proposal: `(e,)` the proposal that sets a value.
      new, old: `(e,)` places of the value that is set and of the one that it replaces, see `ParameterValues`.
      facts: `(k, FACTS)` the operator of each proposal (one-hot), and the logarithm of how many values it sets.
      open: `(k,)` true if the proposal may be chosen.
    """

    proposal: NDArray[np.int64]
    new: NDArray[np.int64]
    old: NDArray[np.int64]
    facts: NDArray[np.float32]
    open: NDArray[np.bool_]

    def scores(self, preferences: NDArray, weights: NDArray, bound: float) -> NDArray[np.float64]:
        """Return `(k,)` scores within a bound, given the `(c,)` preferences for values and the weights of the facts.

        The score is the sum of the preferences for new values over old ones, divided by the square root of their
        number: with plain sums long changes would always be the best and the worst.
        """
        k = len(self.open)
        total = np.bincount(self.proposal, preferences[self.new] - preferences[self.old], k)
        length = np.bincount(self.proposal, minlength=k)
        return bound * np.tanh((total / np.sqrt(np.maximum(length, 1)) + self.facts @ weights) / bound)


def proposals_of(
    configs: NDArray, state: NDArray, operators: NDArray[np.int64], is_open: NDArray, values: ParameterValues
) -> Proposals:
    """Return `(k, d)` changes of a state, made by `(k,)` operators, as proposals."""
    proposal, columns = np.nonzero(configs != state)
    new = values.places(columns, configs[proposal, columns])
    lengths = np.bincount(proposal, minlength=len(configs))
    facts = np.column_stack([np.eye(3)[operators], np.log1p(lengths)]).astype(np.float32)
    return Proposals(proposal, new, values.places(columns, state[columns]), facts, is_open)


def draw(logs: NDArray[np.float64], n: int, rng: Generator) -> NDArray[np.int64]:
    """Draw `n` without replacement, by Gumbel top-k (Kool et al. 2019, "Stochastic beams and where to find them")."""
    keys = logs + rng.gumbel(size=len(logs))
    return np.argsort(-keys, kind="stable")[:n]


def log_softmax(scores: NDArray[np.float64], is_open: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the `(k,)` log-probabilities; -inf for what is not open."""
    masked = np.where(is_open, scores, -np.inf)
    masked = masked - masked.max()
    return masked - np.log(np.exp(masked).sum())


class VisitedSet:
    """The candidates that were proposed, as 64-bit Zobrist keys (Zobrist 1970, with sums instead of exclusive or).

    A key is a sum of random numbers, so the time to hash a change of a state grows with the number of changed
    parameters.
    """

    def __init__(self, d: int, rng: Generator) -> None:
        self._numbers = rng.integers(0, 1 << 64, d, dtype=np.uint64)
        self._known: set[int] = set()

    def keys(self, configs: NDArray, state: NDArray) -> NDArray[np.uint64]:
        """Return `(k,)` keys of changes of a state."""
        rows, columns = np.nonzero(configs != state)
        change = configs[rows, columns].astype(np.int64) - state[columns]
        keys = np.full(len(configs), (state.astype(np.uint64) * self._numbers).sum())
        np.add.at(keys, rows, change.astype(np.uint64) * self._numbers[columns])
        return keys

    def new(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return `(k,)` booleans: true for keys that were not added before, each key once."""
        first = np.zeros(len(keys), bool)
        first[np.unique(keys, return_index=True)[1]] = True
        return first & np.array([key not in self._known for key in keys.tolist()])

    def add(self, keys: NDArray[np.uint64]) -> None:
        """Add keys to the set."""
        self._known.update(keys.tolist())


class GroupTests:
    """Sets the values that a policy prefers, many at once (group testing, Dorfman 1943; halving as in Hwang 1972).

    Parameters are sorted by how far the best other value is preferred to the default, and neighbours in this order form
    groups. The group with the largest sum of probabilities is tried next. If it pays it stays; else both halves wait.

    Args:
      space: forbids some candidates.
      wanted: `(d,)` the best other value of each parameter.
      margins: `(d,)` its preference over the default, as a logarithm of odds; -inf where there is no other value.
      patience: the tests end after so many groups in a row that do not pay.
    """

    def __init__(self, space: Space, wanted: NDArray, margins: NDArray[np.float64], patience: int) -> None:
        self._space, self._wanted, self._margins = space, wanted, margins
        self._patience, self._failed = patience, 0
        self._waiting: list[tuple[float, int, NDArray]] = []
        self._pushed, self._drawn = 0, list[NDArray]()
        order = np.argsort(-margins, kind="stable")
        order = order[margins[order] > _HOPELESS]
        while len(order):
            n = int((margins[order] > margins[order[0]] - _TOLERANCE).sum())
            self._push(order[:n])
            order = order[n:]

    @classmethod
    def preferred(cls, task: Task, values: ParameterValues, preferences: NDArray, patience: int) -> GroupTests:
        """Return tests of what a policy prefers to the default, given its `(c,)` preferences for all values."""
        usual = values.places(values.parameter, task.default[values.parameter])
        others = np.flatnonzero(usual != np.arange(len(values)))
        others = others[np.argsort(preferences[others], kind="stable")]  # of a parameter, the last one counts
        wanted, margins = task.default.copy(), np.full(len(task.default), -np.inf)
        wanted[values.parameter[others]] = values.index(others)
        margins[values.parameter[others]] = preferences[others] - preferences[usual[others]]
        return cls(task.space, wanted, margins, patience)

    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return up to `n` allowed changes of a state; a group that is forbidden as a whole is halved."""
        self._drawn, configs = [], [state[None][:0]]
        while self._waiting and self._failed < self._patience and len(self._drawn) < n:
            group = heapq.heappop(self._waiting)[2]
            row = state.copy()
            row[group] = self._wanted[group]
            if self._space.allowed(row[None])[0]:
                self._drawn.append(group)
                configs.append(row[None])
            else:
                self._halve(group)
        return np.concatenate(configs)

    def learn(self, cost: float, values: NDArray[np.float64]) -> None:
        """Halve the groups drawn last that cost more than the state did; those that cost the same are left out."""
        for group, value in zip(self._drawn, values, strict=True):
            self._failed = 0 if value < cost else self._failed + 1
            if value > cost:
                self._halve(group)
        self._drawn = []

    def _halve(self, group: NDArray) -> None:
        if len(group) > 1:
            self._push(group[: len(group) // 2])
            self._push(group[len(group) // 2 :])

    def _push(self, group: NDArray) -> None:
        chances = 1 / (1 + np.exp(-self._margins[group]))
        if chances.sum() > _LEAST:
            heapq.heappush(self._waiting, (-float(chances.sum()), self._pushed, group))
            self._pushed += 1
