"""The global store: the best known value of every decision, whichever graph it was met on."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decisions


class Store:
    """For each key of one pass, the value in the cheapest candidate that held it.

    Every key has a slot for good. The slots of a graph's decisions are looked up once, by binary search in all keys.
    """

    def __init__(self) -> None:
        self._keys = np.empty(0, np.uint64)  # ascending, and beside them their slots
        self._slots = np.empty(0, np.int64)
        self._values, self._costs = np.empty(0, np.int64), np.empty(0)
        self._found: WeakKeyDictionary[Decisions, NDArray[np.int64]] = WeakKeyDictionary()

    def learn(self, decisions: Decisions, values: NDArray, cost: float) -> None:
        """Note the `(k,)` values of a candidate whose total cost is `cost`."""
        slots = self._slots_of(decisions)
        better = self._costs[slots] > cost  # never for a candidate that failed
        self._values[slots[better]] = values[better]
        self._costs[slots[better]] = cost

    def recall(self, decisions: Decisions) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the `(k,)` best values, and which of them are known."""
        slots = self._slots_of(decisions)
        return self._values[slots], self._costs[slots] < np.inf

    def _slots_of(self, decisions: Decisions) -> NDArray[np.int64]:
        slots = self._found.get(decisions)
        if slots is None:
            self._add(decisions.keys)
            slots = self._slots[np.searchsorted(self._keys, decisions.keys)]
            self._found[decisions] = slots
        return slots

    def _add(self, keys: NDArray[np.uint64]) -> None:
        places = np.searchsorted(self._keys, keys)
        held = np.append(self._keys, np.uint64(0))[places] == keys
        held &= places < len(self._keys)
        new = np.unique(keys[~held])
        places = np.searchsorted(self._keys, new)
        self._slots = np.insert(self._slots, places, len(self._keys) + np.arange(len(new)))
        self._keys = np.insert(self._keys, places, new)
        self._values = np.append(self._values, np.zeros(len(new), np.int64))
        self._costs = np.append(self._costs, np.full(len(new), np.inf))
