"""Which parameter answers for which part, learned from what candidates lose when parameters change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from bbo_suite import Parts

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


def own_parts(parts: Parts, i: int) -> Parts:
    """Return the parts of candidate i alone."""
    own = slice(parts.starts[i], parts.starts[i + 1])
    return Parts(np.array([0, own.stop - own.start]), parts.keys[own], parts.counts[own], parts.costs[own])


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
        kept = np.flatnonzero(np.isin(parts.keys, self._parts.keys))
        places = np.searchsorted(self._parts.keys, parts.keys[kept])
        known = move.replaced >= 0
        for mine, others in ((self._lost, other._lost), (self._changed, other._changed)):
            others[move.new[known]] = mine[move.lost[move.replaced[known]]] / 2
            others[kept] = mine[places]
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
        told = zip(children, columns, moves, parts, strict=True)
        return [
            gain
            for child, changed, move, own in told
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
