"""Search where parts are not described: many changes at once, each credited with the parts that it moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from bbo_suite import Moves, Parts, Task

BATCH = 20
_CHANGES = 2
"""Parameters that a candidate changes: with more, it is not clear for long which of them moved a part."""
_APART = 6
"""Parameters between two changes of a candidate; changes that are closer often move the same parts."""


class CreditSearch:
    """Changes many parameters of one state at once, and merges the changes whose parts became cheaper.

    The merged state is evaluated with the next batch. If it is refused, half as many changes are merged next time; if
    it is accepted, twice as many.

    Args:
      task: to search; its structure is not used.
      rng: draws everything.
    """

    def __init__(self, task: Task, rng: Generator) -> None:
        self._space, self._moves, self._rng = task.space, Moves(task.space), rng
        self._state: NDArray = task.default.astype(task.space.dtype)
        self._cost, self._credit = np.inf, Credit(len(task.space))
        self._merged: NDArray | None = self._state
        self._most = 2 * _CHANGES
        self._width = max(1, min(len(task.space) // _APART, _CHANGES))

    def ask(self, n: int) -> NDArray:
        """Return at most 20 candidates: the merged state, if there is one, and changes of it or of the state."""
        n = 1 if np.isinf(self._cost) else min(n, BATCH)
        if self._merged is None:
            return self._changes(self._state, n)
        return np.concatenate([self._merged[None], self._changes(self._merged, n - 1)])

    def _changes(self, base: NDArray, n: int) -> NDArray:
        """Return `(n, d)` copies of the base in which parameters far from each other are changed."""
        children = np.repeat(base[None], n, axis=0)
        for row in range(n):
            columns = apart(self._rng.permutation(self._moves.movable), len(base))[: self._width]
            self._moves.change(children, np.full(len(columns), row), columns, self._rng)
        return children

    def tell(self, configs: NDArray, values: NDArray[np.float64], parts: Parts) -> None:
        """Accept or refuse the merged state, and merge those changes of the others that gained."""
        own = [parts.of_candidate(i) for i in range(len(configs))]
        accepted = True
        if self._merged is not None:
            accepted = bool(values[0] <= self._cost) or np.isinf(self._cost)
            self._most = max(1, self._most * 2 if accepted else self._most // 2)
            if accepted:
                self._state, self._cost, self._credit = configs[0].copy(), float(values[0]), self._credit.at(own[0])
        base = configs[0] if self._merged is not None else self._state
        if accepted:
            children = range(0 if self._merged is None else 1, len(configs))
            gains = self._credit.gains(base, configs[children], [own[i] for i in children])
            self._merged = self._merge(gains)
        else:
            self._merged = None

    def _merge(self, gains: list[Gain]) -> NDArray | None:
        """Return the state with the changes that gained most and move different parts; None if there are none."""
        merged, moved, taken = self._state.copy(), set[int](), 0
        for gain in sorted((gain for gain in gains if gain.difference < 0), key=lambda gain: gain.difference):
            if taken < self._most and not gain.moved & moved and merged[gain.column] == self._state[gain.column]:
                merged[gain.column], taken = gain.value, taken + 1
                moved |= gain.moved
        return merged if taken and self._space.allowed(merged[None])[0] else None

    def diagnostics(self) -> dict[str, float]:
        """Return nothing."""
        return {}


def apart(columns: NDArray[np.int64], d: int) -> NDArray[np.int64]:
    """Return those of some parameters that are far from all that come before them."""
    near, chosen = np.zeros(d + 2 * _APART, bool), []
    for column in columns.tolist():
        if not near[column + _APART]:
            near[column + 1 : column + 2 * _APART] = True
            chosen.append(column)
    return np.array(chosen, np.int64)


_SHARPNESS = 4.0
_COUNTS_DIFFER = 3.0
_FAILED = 3.0
"""What a part that failed costs, in costs of the part that it replaces: a share of it may be credited to others."""


class Gain(NamedTuple):
    """A change of one parameter.

    Attributes:
      difference: of the cost, less than 0 if it gains.
      column, value: the parameter and its new value.
      moved: the parts of the state that it answers for.
    """

    difference: float
    column: int
    value: int
    moved: frozenset[int]


class Move(NamedTuple):
    """How the parts of a candidate differ from those of the state.

    Attributes:
      lost, new: the places of parts that the state has more often, and those that the candidate has more often.
      lost_cost, gained_cost: what these times cost.
      replaced: which one of `lost` each new part replaces; -1 for none.
    """

    lost: NDArray[np.int64]
    lost_cost: NDArray[np.float64]
    new: NDArray[np.int64]
    gained_cost: NDArray[np.float64]
    replaced: NDArray[np.int64]


class Credit:
    """How often each part of a state was lost when each of d parameters was changed.

    A part that is new replaces one that was lost: of the same count, and of the nearest cost. What it differs in cost
    is credited to the changed parameters in proportion to how much they answer for the lost part.
    """

    def __init__(self, d: int, parts: Parts | None = None) -> None:
        self._parts = Parts.of_none(1) if parts is None else parts
        self._lost, self._changed = np.zeros((len(self._parts.keys), d)), np.zeros((len(self._parts.keys), d))

    def at(self, parts: Parts) -> Credit:
        """Return the credit at another state; a new part begins with that of the part which it replaces."""
        other = Credit(self._lost.shape[1], parts)
        move = self._moved(parts)
        same = np.flatnonzero(np.isin(parts.keys, self._parts.keys))
        places = np.searchsorted(self._parts.keys, parts.keys[same])
        known = move.replaced >= 0
        for mine, others in ((self._lost, other._lost), (self._changed, other._changed)):
            others[move.new[known]] = mine[move.lost[move.replaced[known]]] / 2
            others[same] = mine[places]
        return other

    def _moved(self, parts: Parts) -> Move:
        """Return how a candidate's parts differ from those of the state."""
        fewer = self._parts.counts - _counts(self._parts.keys, parts)
        more = parts.counts - _counts(parts.keys, self._parts)
        lost, new = np.flatnonzero(fewer > 0), np.flatnonzero(more > 0)
        logs = [np.log(np.clip(costs, 1e-300, 1e300)) for costs in (parts.costs[new], self._parts.costs[lost])]
        differ = more[new][:, None] != fewer[lost]
        rows, columns = linear_sum_assignment(np.abs(logs[0][:, None] - logs[1]) + _COUNTS_DIFFER * differ)
        replaced = np.full(len(new), -1)
        replaced[rows] = columns
        lost_cost = fewer[lost] * self._parts.costs[lost]
        failed = _FAILED * np.append(lost_cost, lost_cost.mean() if len(lost) else 0.0)[replaced]
        gained_cost = np.where(np.isinf(parts.costs[new]), failed, more[new] * parts.costs[new])
        return Move(lost, lost_cost, new, gained_cost, replaced)

    def gains(self, base: NDArray, children: NDArray, parts: list[Parts]) -> list[Gain]:
        """Return what each change of some children of the state gains."""
        columns = [np.flatnonzero(child != base) for child in children]
        moves = [self._moved(own) for own in parts]
        for changed, move in zip(columns, moves, strict=True):
            self._changed[:, changed] += 1
            self._lost[np.ix_(move.lost, changed)] += 1
        each = zip(children, columns, moves, parts, strict=True)
        return [
            gain
            for child, changed, move, own in each
            if len(changed) and len(own.keys)
            for gain in self._shares(child, changed, move)
        ]

    def _shares(self, child: NDArray, columns: NDArray[np.int64], move: Move) -> Iterator[Gain]:
        """Share what a child's parts differ among its changed parameters."""
        at = np.ix_(move.lost, columns)
        answers = ((self._lost[at] + 0.05) / (self._changed[at] + 1)) ** _SHARPNESS
        even = np.full((1, len(columns)), 1 / len(columns))
        answers = np.vstack([answers / answers.sum(axis=1, keepdims=True), even])
        dearer = answers[move.replaced].T @ move.gained_cost
        differences = dearer - answers[:-1].T @ move.lost_cost
        owners = answers[:-1].argmax(axis=1)
        for place, column in enumerate(columns.tolist()):
            moved = frozenset(move.lost[owners == place].tolist())
            yield Gain(float(differences[place]), column, int(child[column]), moved)


def _counts(keys: NDArray[np.uint64], parts: Parts) -> NDArray[np.float64]:
    """Return how often a candidate has the part with each of some keys."""
    if not len(parts.keys):
        return np.zeros(len(keys))
    places = np.minimum(np.searchsorted(parts.keys, keys), len(parts.keys) - 1)
    return np.where(parts.keys[places] == keys, parts.counts[places], 0.0)
