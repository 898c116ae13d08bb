"""Children of the state: single changes in turns, and changes of parameters that belong together."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Structure, Task

_REACH = 2.0


class Proposals:
    """Draws children of one row.

    Args:
      task: its space and, if the strategy sees it, who interacts with whom.
      rng: draws everything.
    """

    def __init__(self, task: Task, rng: Generator) -> None:
        self._moves, self._rng, self._structure = Moves(task.space), rng, task.structure
        self._movable = self._moves.movable
        self._can_move = np.zeros(len(task.space), bool)
        self._can_move[self._movable] = True
        self._turns = np.zeros(0, np.int64)

    def singles(self, base: NDArray, n: int) -> NDArray:
        """Return `n` single changes; each parameter gets its turn before any comes again."""
        while len(self._turns) < n and len(self._movable):
            self._turns = np.concatenate([self._turns, self._rng.permutation(self._movable)])
        columns, self._turns = self._turns[:n], self._turns[n:]
        return self._changed(np.repeat(base[None], n, axis=0), np.arange(len(columns)), columns)

    def windows(self, base: NDArray, n: int) -> NDArray:
        """Return `n` children with 2 or 3 changes close to each other.

        A problem numbers its parameters in some order, and neighbours in it interact more often than others: edges of
        a program in topological order, positions of a sequence. A structure says exactly who interacts.
        """
        if not len(self._movable):
            return base[None][:0]
        rows = np.repeat(np.arange(n), self._rng.integers(2, 4, n))
        centres = self._movable[self._rng.integers(0, len(self._movable), n)]
        return self._changed(np.repeat(base[None], n, axis=0), rows, self._near(centres[rows]))

    def grown(self, base: NDArray, parents: NDArray, n: int) -> NDArray:
        """Return `n` children of children of the base: the changes of two together, or another change near one."""
        first, second = parents[self._rng.integers(0, len(parents), (2, n))]
        joined = np.flatnonzero(self._rng.random(n) < 0.5)
        grown = first.copy()
        grown[joined] = np.where(first[joined] != base, first[joined], second[joined])
        other = np.setdiff1d(np.arange(n), joined)
        near = self._near(((first[other] != base) & self._can_move).argmax(axis=1))
        return self._changed(grown, other, near)

    def _changed(self, children: NDArray, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray:
        can = self._can_move[columns]
        self._moves.change(children, rows[can], columns[can], self._rng)
        return children

    def _near(self, centres: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each parameter one close to it, or itself: by Laplacian distances, or two steps on the graph."""
        if self._structure is not None:
            return _step(self._structure, _step(self._structure, centres, self._rng), self._rng)
        steps = np.round(self._rng.laplace(0, _REACH, len(centres))).astype(np.int64)
        places = np.searchsorted(self._movable, centres) + steps
        return self._movable[places % len(self._movable)]


def _step(structure: Structure, at: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
    """Return for each parameter, with equal chances, itself or a random one that it interacts with."""
    first, degree = structure.starts[at], np.diff(structure.starts)[at]
    chosen = first + (rng.random(len(at)) * degree).astype(np.int64)
    goes = (degree > 0) & (rng.random(len(at)) < 0.5)
    return np.where(goes, structure.neighbours[np.where(goes, chosen, 0)] if goes.any() else at, at).astype(np.int64)
