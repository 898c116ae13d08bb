"""The operators of local search: each measures some candidates and moves the state to a better one."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Moves, Space

from ..changes import MutationRate
from .moves import MoveList, Neighbourhood, Pairs

Costs = NDArray[np.float64]
Asking = Generator[NDArray, Costs, None]
"""A part of the search: it yields rows to evaluate and is sent their costs."""
Moving = Generator[NDArray, Costs, tuple[NDArray, float]]
"""As `Asking`, but it also returns a row and its cost."""


class SearchState:
    """The current candidate with its cost; better candidates of other strategies are adopted between turns.

    Attributes:
      row: `(d,)`.
      cost: its cost, inf until it is measured.
      best: the lowest cost so far.
    """

    def __init__(self, row: NDArray, near: Neighbourhood, move_list: MoveList, pairs: Pairs) -> None:
        self.row, self.cost, self.best = row, np.inf, np.inf
        self._near, self._move_list, self._pairs = near, move_list, pairs
        self._remembered = row, np.inf

    def measure(self, cost: float) -> None:
        """Set the cost of the first row."""
        self.cost = self.best = cost

    def move(self, row: NDArray, cost: float) -> None:
        """Move to a row; all moves of changed parameters, and of those that interact with them, are tried again."""
        changed = np.flatnonzero(row != self.row)
        if len(changed):
            around = self._near.around(changed)
            self._move_list.wake(around)
            self._pairs.wake(around)
            self.row, self.cost = row, cost
            self.best = min(self.best, cost)

    def remember(self, configs: NDArray, costs: NDArray[np.float64]) -> None:
        """Remember the best candidate of other strategies."""
        best = int(np.argmin(costs))
        if costs[best] < self._remembered[1]:
            self._remembered = configs[best].copy(), float(costs[best])

    def adopt(self) -> None:
        """Move to the best candidate of other strategies, if it is better."""
        if self._remembered[1] < self.cost:
            self.move(*self._remembered)


def gain(before: float, after: float) -> float:
    """Return the relative decrease of a cost: 1 from inf to finite, -1 from finite to inf, 0 if both are inf."""
    if np.isinf(before) or np.isinf(after):
        return float(np.isinf(before)) - float(np.isinf(after))
    return (before - after) / before if before > 0 else 0.0


class Perturbations:
    """Random changes of a parameter together with some that interact with it.

    If the parameter interacts with no other, any other parameters are taken.

    Args:
      moves: the moves of the space.
      near: which parameters interact.
      most: the largest number of others.
    """

    def __init__(self, moves: Moves, near: Neighbourhood, most: int) -> None:
        self._moves, self._near, self._most = moves, near, most
        movable = np.zeros(len(near.alike), bool)
        movable[moves.movable] = True
        self._movable = movable
        self._plain = near.plain

    def near(self, state: NDArray, n: int, rng: np.random.Generator) -> NDArray:
        """Return `(n, d)` rows with other values of a parameter and of 1 to `most` that interact with it."""
        columns = [self._with_others(anchor, rng) for anchor in rng.choice(self._moves.movable, n)]
        rows = np.repeat(state[None], n, axis=0)
        self._moves.change(rows, np.repeat(np.arange(n), [len(c) for c in columns]), np.concatenate(columns), rng)
        return rows

    def at_places(self, state: NDArray, n: int, move_list: MoveList, rng: np.random.Generator) -> NDArray:
        """Return `(n, d)` rows in which all parameters of a node have one value."""
        moves = [move_list.about(anchor, state, rng) for anchor in rng.choice(self._moves.movable, n)]
        return move_list.rows(state, np.array(moves), rng)

    def elsewhere(self, state: NDArray, columns: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray:
        """Return up to `most` rows that repeat the values of some parameters in alike ones, at equal distances."""
        columns, alike = columns[self._plain[columns]], self._near.alike
        if not len(columns):
            return state[None][:0]
        anchor = rng.choice(columns)
        shifts = np.setdiff1d(np.flatnonzero(alike == alike[anchor]) - anchor, 0)
        shifts = rng.choice(shifts, min(most, len(shifts)), replace=False)
        k, i = np.divmod(np.arange(len(shifts) * len(columns)), len(columns))
        sources, targets = columns[i], columns[i] + shifts[k]
        valid = (targets >= 0) & (targets < len(alike))
        valid[valid] = (alike[targets[valid]] == alike[sources[valid]]) & self._plain[targets[valid]]
        rows = np.repeat(state[None], len(shifts), axis=0)
        rows[k[valid], targets[valid]] = state[sources[valid]]
        return rows[(rows != state).any(axis=1)]

    def _with_others(self, anchor: int, rng: np.random.Generator) -> NDArray[np.int64]:
        others = self._near.of(anchor)
        others = others[self._movable[others]]
        if not len(others):
            others = np.setdiff1d(rng.choice(self._moves.movable, self._most), anchor)
        count = min(len(others), int(rng.integers(1, self._most + 1)))
        return np.append(rng.permutation(others)[:count], anchor)


_MOST_ROUNDS, _MOST_TRIALS = 3, 32


class Descent:
    """Descent from a row, by given changes or by single changes around what has changed."""

    def __init__(self, space: Space, near: Neighbourhood, move_list: MoveList, rng: np.random.Generator) -> None:
        self._space, self._near, self._move_list, self._rng = space, near, move_list, rng

    def merge(self, state: NDArray, rows: NDArray) -> NDArray:
        """Return the `(d,)` state with the changes of `(k, d)` rows, except those that interact with an earlier one.

        If the constraints forbid the result, only the first change is made.
        """
        merged = rows[0].copy()
        touched = np.zeros(len(state), bool)
        touched[self._near.around(np.flatnonzero(merged != state))] = True
        for row in rows[1:]:
            columns = np.flatnonzero(row != state)
            if not touched[columns].any():
                merged[columns] = row[columns]
                touched[self._near.around(columns)] = True
        return merged if self._space.allowed(merged[None])[0] else rows[0].copy()

    def improve(self, row: NDArray, cost: float, rows: NDArray, costs: Costs) -> Moving:
        """Return the row with all improvements among `(k, d)` rows, or with the best alone if that is better."""
        good = np.flatnonzero(costs < cost)
        good = good[np.argsort(costs[good], kind="stable")]
        if not len(good):
            return row, cost
        best, least = rows[good[0]].copy(), float(costs[good[0]])
        merged = self.merge(row, rows[good])
        if (merged != best).any():
            together = float((yield merged[None])[0])
            if together < least:
                return merged, together
        return best, least

    def repair(self, row: NDArray, cost: float, columns: NDArray[np.int64]) -> Moving:
        """Improve a row by single changes around what has changed, until none helps."""
        for _ in range(_MOST_ROUNDS):
            trials = self._move_list.singles(row, self._near.around(columns), _MOST_TRIALS, self._rng)
            if not len(trials):
                break
            better, least = yield from self.improve(row, cost, trials, (yield trials))
            columns = np.flatnonzero(better != row)
            row, cost = better, least
            if not len(columns):
                break
        return row, cost


ROUND = 32
_REPAIRED, _REPEATS = 2, 16


class Operators:
    """`alike`, `once` and `paired` try waiting moves; `near` and `place` perturb it.

    Args:
      state: is moved.
      move_list, pairs: the waiting moves and pairs of moves.
      perturbations: draws perturbations.
      descent: merges and repairs.
      tolerance: returns by which share a repaired perturbation may now be worse than the best.
      strength: draws how many waiting moves are tried together where most cost nothing; None for one.
      rng: draws everything else.
    """

    def __init__(
        self,
        state: SearchState,
        move_list: MoveList,
        pairs: Pairs,
        perturbations: Perturbations,
        descent: Descent,
        tolerance: Callable[[], float],
        strength: MutationRate | None,
        rng: np.random.Generator,
    ) -> None:
        self._state, self._move_list, self._pairs, self._perturbations = state, move_list, pairs, perturbations
        self._descent, self._tolerance, self._strength, self._rng = descent, tolerance, strength, rng
        self._alike, self._listed_cost = np.empty(0, np.int64), np.nan  # kinds, and the cost when they were listed

    def has_alike(self) -> bool:
        """Return true if some kind of move has not been tried everywhere at once since the cost last changed."""
        if not len(self._alike) and self._state.cost != self._listed_cost:
            self._listed_cost = self._state.cost
            self._alike = self._move_list.shared(self._state.row, self._rng)
        return len(self._alike) > 0

    def alike(self) -> Asking:
        """Make all moves of a kind at once, for a few kinds."""
        if not self.has_alike():
            return
        state = self._state.row
        kinds, self._alike = self._alike[:ROUND], self._alike[ROUND:]
        rows = np.array([self._move_list.everywhere(state, kind) for kind in kinds])
        if len(rows) and len(rows := rows[(rows != state).any(axis=1)]):
            yield from self._improve(rows)

    def once(self) -> Asking:
        """Make the most promising moves that wait, one or several at a time."""
        counts = self._strength.draw(ROUND) if self._strength else np.ones(ROUND, np.int64)
        moves = self._move_list.next(int(counts.sum()), self._state.row, self._rng)
        if not len(moves):
            return
        counts = np.diff(np.minimum(np.cumsum(counts), len(moves)), prepend=0)  # the queue may hold fewer
        counts = counts[counts > 0]
        rows = self._move_list.rows(self._state.row, moves, self._rng, counts)
        costs = yield rows
        gains = np.array([gain(self._state.cost, cost) for cost in costs])
        self._move_list.learn(moves, gains, counts)
        if self._strength:
            self._strength.learn(counts, np.maximum(gains, 0.0), gains == 0)
        self._state.move(*(yield from self._descent.improve(self._state.row, self._state.cost, rows, costs)))
        self._move_list.waiting[moves[np.repeat(gains > 0, counts)]] = True

    def paired(self) -> Asking:
        """Make the most promising of the waiting pairs of moves."""
        rows = self._pairs.next(ROUND, self._state.row)
        if len(rows):
            yield from self._improve(rows)

    def near(self) -> Asking:
        """Perturb a few parameters that interact."""
        yield from self._perturb(self._perturbations.near(self._state.row, ROUND, self._rng))

    def place(self) -> Asking:
        """Set all parameters of a node to one value, for a few nodes."""
        yield from self._perturb(self._perturbations.at_places(self._state.row, ROUND, self._move_list, self._rng))

    def _improve(self, rows: NDArray) -> Asking:
        """Measure `(k, d)` changes of the state, and take what is better."""
        row, cost = self._state.row, self._state.cost
        self._state.move(*(yield from self._descent.improve(row, cost, rows, (yield rows))))

    def _perturb(self, rows: NDArray) -> Asking:
        """Measure `(k, d)` perturbations of the state, and take improvements, or else repair the best perturbations."""
        state, origin = self._state, self._state.row
        costs = yield rows
        if costs.min() < state.cost:
            state.move(*(yield from self._descent.improve(origin, state.cost, rows, costs)))
            yield from self._repeat(origin)
            return
        order = np.argsort(costs, kind="stable")
        for i in order[(rows[order] != origin).any(axis=1)][:_REPAIRED]:
            yield from self._repair(rows[i], float(costs[i]), origin)

    def _repair(self, row: NDArray, cost: float, origin: NDArray) -> Asking:
        """Repair a perturbation of an earlier state, and take it if it is better, or hardly worse than the best."""
        state, before = self._state, self._state.row
        columns = np.flatnonzero(row != origin)
        if before is not origin:
            row = self._descent.merge(origin, np.stack([row, before]))
            cost = float((yield row[None])[0])
        row, cost = yield from self._descent.repair(row, cost, columns)
        better = cost < state.best
        if cost < state.cost or cost <= state.best * (1 + self._tolerance()):
            state.move(row, cost)
        if better:
            yield from self._repeat(before)

    def _repeat(self, before: NDArray) -> Asking:
        """Repeat the last step at other alike places."""
        state = self._state.row
        rows = self._perturbations.elsewhere(state, np.flatnonzero(state != before), _REPEATS, self._rng)
        if len(rows):
            yield from self._improve(rows)
