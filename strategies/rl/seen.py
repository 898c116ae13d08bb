"""Which candidates were proposed already: sums of random numbers, so that a candidate costs what it changes."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray


class Seen:
    """Remembers candidates by 64 bits each (Zobrist 1970, for sums instead of exclusive or)."""

    def __init__(self, d: int, rng: Generator) -> None:
        self._numbers = rng.integers(0, 1 << 64, d, dtype=np.uint64)
        self._known: set[int] = set()

    def keys(self, configs: NDArray, state: NDArray) -> NDArray[np.uint64]:
        """Return `(k,)` keys of changes of a state."""
        rows, columns = np.nonzero(configs != state)
        change = configs[rows, columns].astype(np.int64) - state[columns]
        keys = np.full(len(configs), (state.astype(np.uint64) * self._numbers).sum())
        np.add.at(keys, rows, change.astype(np.uint64) * self._numbers[columns])
        return keys

    def new(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which were neither added nor stand further ahead."""
        first = np.zeros(len(keys), bool)
        first[np.unique(keys, return_index=True)[1]] = True
        return first & np.array([key not in self._known for key in keys.tolist()])

    def add(self, keys: NDArray[np.uint64]) -> None:
        """Remember these."""
        self._known.update(keys.tolist())
