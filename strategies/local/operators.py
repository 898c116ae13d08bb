"""The operators of local search: each measures some candidates and moves the state to a better one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..adaptive_moves import MutationRate
from .catalogue import Catalogue
from .descent import Asking, Descent
from .kicks import Kicks
from .pairs import Pairs
from .search_state import SearchState, gain

ROUND = 32
_REPAIRED, _REPEATS = 2, 16


class Operators:
    """`alike`, `once` and `paired` try waiting moves; `near` and `place` kick the state at random.

    Args:
      state: is moved.
      catalogue, pairs: the waiting moves and pairs of moves.
      kicks: draws kicks.
      descent: merges and repairs.
      tolerance: returns by which share a repaired kick may now be worse than the best.
      strength: draws how many waiting moves are tried together where most cost nothing; None for one.
      rng: draws everything else.
    """

    def __init__(
        self,
        state: SearchState,
        catalogue: Catalogue,
        pairs: Pairs,
        kicks: Kicks,
        descent: Descent,
        tolerance: Callable[[], float],
        strength: MutationRate | None,
        rng: Generator,
    ) -> None:
        self._state, self._catalogue, self._pairs, self._kicks = state, catalogue, pairs, kicks
        self._descent, self._tolerance, self._strength, self._rng = descent, tolerance, strength, rng
        self._alike, self._listed_cost = np.empty(0, np.int64), np.nan  # kinds, and the cost when they were listed

    def has_alike(self) -> bool:
        """Return true if some kind of move has not been tried everywhere at once since the cost last changed."""
        if not len(self._alike) and self._state.cost != self._listed_cost:
            self._listed_cost = self._state.cost
            self._alike = self._catalogue.shared(self._state.row, self._rng)
        return len(self._alike) > 0

    def alike(self) -> Asking:
        """Make all moves of a kind at once, for a few kinds."""
        if not self.has_alike():
            return
        state = self._state.row
        kinds, self._alike = self._alike[:ROUND], self._alike[ROUND:]
        rows = np.array([self._catalogue.everywhere(state, kind) for kind in kinds])
        if len(rows) and len(rows := rows[(rows != state).any(axis=1)]):
            yield from self._improve(rows)

    def once(self) -> Asking:
        """Make the most promising moves that wait, one or several at a time."""
        counts = self._strength.draw(ROUND) if self._strength else np.ones(ROUND, np.int64)
        moves = self._catalogue.next(int(counts.sum()), self._state.row, self._rng)
        if not len(moves):
            return
        counts = np.diff(np.minimum(np.cumsum(counts), len(moves)), prepend=0)  # the queue may hold fewer
        counts = counts[counts > 0]
        rows = self._catalogue.rows(self._state.row, moves, self._rng, counts)
        costs = yield rows
        gains = np.array([gain(self._state.cost, cost) for cost in costs])
        self._catalogue.learn(moves, gains, counts)
        if self._strength:
            self._strength.learn(counts, np.maximum(gains, 0.0), gains == 0)
        self._state.move(*(yield from self._descent.improve(self._state.row, self._state.cost, rows, costs)))
        self._catalogue.waiting[moves[np.repeat(gains > 0, counts)]] = True

    def paired(self) -> Asking:
        """Make the most promising of the waiting pairs of moves."""
        rows = self._pairs.next(ROUND, self._state.row)
        if len(rows):
            yield from self._improve(rows)

    def near(self) -> Asking:
        """Kick a few parameters that interact."""
        yield from self._kick(self._kicks.near(self._state.row, ROUND, self._rng))

    def place(self) -> Asking:
        """Set all parameters of a node to one value, for a few nodes."""
        yield from self._kick(self._kicks.at_places(self._state.row, ROUND, self._catalogue, self._rng))

    def _improve(self, rows: NDArray) -> Asking:
        """Measure `(k, d)` changes of the state, and take what is better."""
        row, cost = self._state.row, self._state.cost
        self._state.move(*(yield from self._descent.improve(row, cost, rows, (yield rows))))

    def _kick(self, rows: NDArray) -> Asking:
        """Measure `(k, d)` kicks of the state, and take improvements, or else repair the best kicks."""
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
        """Repair a kick of an earlier state, and take the result if it is better, or hardly worse than the best."""
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
        rows = self._kicks.elsewhere(state, np.flatnonzero(state != before), _REPEATS, self._rng)
        if len(rows):
            yield from self._improve(rows)
