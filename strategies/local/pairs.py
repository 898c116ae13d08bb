"""Pairs of moves of interacting parameters, which reach what single moves cannot."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .catalogue import Catalogue
from .neighbourhood import Neighbourhood

_MOST = 100_000
_SHORTEST, _SHARE = 64, 32


class Pairs:
    """All pairs of single moves of interacting parameters; each is tried once, and again when a parameter has changed.

    A pair ranks higher in a sensitive neighbourhood, where single moves change the cost most on average, and if one of
    its moves alone costs little, because the other may pay after it. Of more than 100,000 pairs a random selection
    of that many is kept.

    Args:
      catalogue: the moves.
      near: which parameters interact.
      rng: draws the selection.
    """

    def __init__(self, catalogue: Catalogue, near: Neighbourhood, rng: Generator) -> None:
        self._catalogue, self._near = catalogue, near
        d = len(near.starts) - 1
        self._rows = np.repeat(np.arange(d), np.diff(near.starts))
        moves, firsts = catalogue.settings(d)
        counts = np.diff(firsts)
        edges = np.flatnonzero(self._rows < near.neighbours)
        left, right = self._rows[edges], near.neighbours[edges].astype(np.int64)
        products = counts[left] * counts[right]
        selected = rng.permutation(len(products))
        selected = np.sort(selected[np.cumsum(products[selected]) <= _MOST])
        left, right, products = left[selected], right[selected], products[selected]
        k = np.repeat(np.arange(len(products)), products)
        i, j = np.divmod(np.arange(len(k)) - np.repeat(np.cumsum(products) - products, products), counts[right][k])
        self._pairs = np.column_stack([moves[firsts[left][k] + i], moves[firsts[right][k] + j]])
        self._columns = np.column_stack([left[k], right[k]])
        self._waiting = np.ones(len(self._pairs), bool)
        self._queue = np.empty(0, np.int64)

    def __len__(self) -> int:
        """Return the number of pairs that are kept."""
        return len(self._pairs)

    def count(self, state: NDArray) -> int:
        """Return how many pairs wait and would change both of their parameters."""
        waiting = np.flatnonzero(self._waiting)
        return int(np.count_nonzero(self._live(waiting, state)))

    def wake(self, columns: NDArray[np.int64]) -> None:
        """Mark all pairs with one of these parameters as still to be tried."""
        changed = np.zeros(len(self._near.starts) - 1, bool)
        changed[columns] = True
        self._waiting |= changed[self._columns].any(axis=1)

    def next(self, n: int, state: NDArray) -> NDArray:
        """Return up to `n` copies of the state with a waiting pair of moves each; these no longer wait."""
        self._queue = self._queue[self._live(self._queue, state)]
        if len(self._queue) < n and self._waiting.any():
            self._queue = self._rank(state)
        chosen, self._queue = self._queue[:n], self._queue[n:]
        self._waiting[chosen] = False
        rows = np.repeat(state[None], len(chosen), axis=0)
        rows[np.arange(len(chosen))[:, None], self._columns[chosen]] = self._catalogue.values[self._pairs[chosen]]
        return rows

    def _live(self, pairs: NDArray[np.int64], state: NDArray) -> NDArray[np.bool_]:
        """Return booleans: true for pairs that wait and of which both moves change something."""
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
        """Return the `(d,)` mean change of the cost by moves of a parameter and of those that interact with it."""
        sensitivity, near = self._catalogue.sensitivity(), self._near
        d = len(sensitivity)
        around = np.bincount(self._rows, sensitivity[near.neighbours], d)
        return (sensitivity + around) / (1 + np.diff(near.starts))
