"""Kicks: random changes of a few parameters that interact, which lead out of a local optimum."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves

from .catalogue import Catalogue
from .neighbourhood import Neighbourhood


class Kicks:
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

    def near(self, state: NDArray, n: int, rng: Generator) -> NDArray:
        """Return `(n, d)` rows with other values of a parameter and of 1 to `most` that interact with it."""
        columns = [self._with_others(anchor, rng) for anchor in rng.choice(self._moves.movable, n)]
        rows = np.repeat(state[None], n, axis=0)
        self._moves.change(rows, np.repeat(np.arange(n), [len(c) for c in columns]), np.concatenate(columns), rng)
        return rows

    def at_places(self, state: NDArray, n: int, catalogue: Catalogue, rng: Generator) -> NDArray:
        """Return `(n, d)` rows in which all parameters of a node have one value."""
        moves = [catalogue.about(anchor, state, rng) for anchor in rng.choice(self._moves.movable, n)]
        return catalogue.rows(state, np.array(moves), rng)

    def elsewhere(self, state: NDArray, columns: NDArray[np.int64], most: int, rng: Generator) -> NDArray:
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

    def _with_others(self, anchor: int, rng: Generator) -> NDArray[np.int64]:
        others = self._near.of(anchor)
        others = others[self._movable[others]]
        if not len(others):
            others = np.setdiff1d(rng.choice(self._moves.movable, self._most), anchor)
        count = min(len(others), int(rng.integers(1, self._most + 1)))
        return np.append(rng.permutation(others)[:count], anchor)
