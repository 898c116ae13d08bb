"""Two moves at once of parameters that interact: what single moves can't reach."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .catalogue import Catalogue
from .neighbourhood import Neighbourhood

_MOST = 100_000
_SHORTEST, _SHARE = 64, 32


class Pairs:
    """Every two single moves of parameters that interact; each pair is looked at once, and again when one has changed.

    First come those in sensitive neighbourhoods, where single moves make large differences on average, of which one
    move costs little on its own: there the other may pay once it is made. Of more than 100,000 pairs only so many, by
    chance, are known.

    Args:
      catalogue: of the moves.
      near: what interacts.
      rng: draws which are known, if there are too many.
    """

    def __init__(self, catalogue: Catalogue, near: Neighbourhood, rng: Generator) -> None:
        self._catalogue, self._near = catalogue, near
        d = len(near.starts) - 1
        self._rows = np.repeat(np.arange(d), np.diff(near.starts))
        moves, firsts = catalogue.settings(d)
        counts = np.diff(firsts)
        once = np.flatnonzero(self._rows < near.neighbours)
        left, right = self._rows[once], near.neighbours[once].astype(np.int64)
        products = counts[left] * counts[right]
        kept = rng.permutation(len(products))
        kept = np.sort(kept[np.cumsum(products[kept]) <= _MOST])
        left, right, products = left[kept], right[kept], products[kept]
        k = np.repeat(np.arange(len(products)), products)
        i, j = np.divmod(np.arange(len(k)) - np.repeat(np.cumsum(products) - products, products), counts[right][k])
        self._pairs = np.column_stack([moves[firsts[left][k] + i], moves[firsts[right][k] + j]])
        self._columns = np.column_stack([left[k], right[k]])
        self._waiting = np.ones(len(self._pairs), bool)
        self._queue = np.empty(0, np.int64)

    def __len__(self) -> int:
        """How many are known."""
        return len(self._pairs)

    def count(self, state: NDArray) -> int:
        """Return how many wait and would change both of their parameters."""
        waiting = np.flatnonzero(self._waiting)
        return int(np.count_nonzero(self._live(waiting, state)))

    def wake(self, columns: NDArray[np.int64]) -> None:
        """Let all pairs with one of these parameters wait again."""
        changed = np.zeros(len(self._near.starts) - 1, bool)
        changed[columns] = True
        self._waiting |= changed[self._columns].any(axis=1)

    def next(self, n: int, state: NDArray) -> NDArray:
        """Return up to `n` copies of the state with a waiting pair of moves each; they wait no more."""
        self._queue = self._queue[self._live(self._queue, state)]
        if len(self._queue) < n and self._waiting.any():
            self._queue = self._rank(state)
        taken, self._queue = self._queue[:n], self._queue[n:]
        self._waiting[taken] = False
        rows = np.repeat(state[None], len(taken), axis=0)
        rows[np.arange(len(taken))[:, None], self._columns[taken]] = self._catalogue.values[self._pairs[taken]]
        return rows

    def _live(self, pairs: NDArray[np.int64], state: NDArray) -> NDArray[np.bool_]:
        """Return whether pairs wait and both of their moves change something."""
        changes = state[self._columns[pairs]] != self._catalogue.values[self._pairs[pairs]]
        return self._waiting[pairs] & changes.all(axis=1)

    def _rank(self, state: NDArray) -> NDArray[np.int64]:
        waiting = np.flatnonzero(self._waiting)
        waiting = waiting[self._live(waiting, state)]
        differences = self._catalogue.differences
        score = self._sensitivity()[self._columns[waiting]].mean(axis=1)
        score -= np.maximum(0.0, differences[self._pairs[waiting]].min(axis=1))
        return waiting[np.argsort(-score, kind="stable")[: max(_SHORTEST, len(waiting) // _SHARE)]]

    def _sensitivity(self) -> NDArray[np.float64]:
        """Return for each parameter what its moves, and those of what interacts with it, change on average."""
        own, near = self._catalogue.sensitivity(), self._near
        d = len(own)
        around = np.bincount(self._rows, own[near.neighbours], d)
        return (own + around) / (1 + np.diff(near.starts))
