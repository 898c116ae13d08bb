"""The global store: the best known value of every decision, on whichever graph it occurred."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions


class GlobalStore:
    """For each key of one pass, the value in the cheapest candidate that held it.

    Every key has a fixed slot. Graphs differ little from each other, so the last slot of a column is tried first, and
    only keys that differ are looked up.

    Args:
      d: number of columns of the flat space.
    """

    def __init__(self, d: int) -> None:
        self._keys = np.empty(0, np.uint64)  # ascending, with their slots in the next array
        self._slots = np.empty(0, np.int64)
        self._values, self._costs = np.empty(0, np.int64), np.empty(0)
        self._last_keys, self._last_slots = np.zeros(d, np.uint64), np.full(d, -1)

    def learn(self, decisions: Decisions, values: NDArray, cost: float) -> None:
        """Store the `(k,)` values of a candidate with this total cost where they are the best so far."""
        slots = self._slots_of(decisions.columns, decisions.keys)
        better = self._costs[slots] > cost  # never for a candidate that failed
        self._values[slots[better]] = values[better]
        self._costs[slots[better]] = cost

    def recall(self, columns: NDArray[np.int64], keys: NDArray[np.uint64]) -> tuple[NDArray, NDArray[np.bool_]]:
        """Return the `(k,)` best values of decisions, and `(k,)` booleans: true where one is known."""
        slots = self._slots_of(columns, keys)
        return self._values[slots], self._costs[slots] < np.inf

    def _slots_of(self, columns: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        slots = self._last_slots[columns]
        other = np.flatnonzero((self._last_keys[columns] != keys) | (slots < 0))
        if len(other):
            slots[other] = self._looked_up(keys[other])
            self._last_keys[columns[other]], self._last_slots[columns[other]] = keys[other], slots[other]
        return slots

    def _looked_up(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the slots of `(k,)` keys; a new key gets a new slot."""
        places = np.searchsorted(self._keys, keys)
        held = places < len(self._keys)
        held[held] = self._keys[places[held]] == keys[held]
        if not held.all():
            new = np.unique(keys[~held])
            places = np.searchsorted(self._keys, new)
            self._slots = np.insert(self._slots, places, len(self._keys) + np.arange(len(new)))
            self._keys = np.insert(self._keys, places, new)
            self._values = np.append(self._values, np.zeros(len(new), np.int64))
            self._costs = np.append(self._costs, np.full(len(new), np.inf))
            places = np.searchsorted(self._keys, keys)
        return self._slots[places]
