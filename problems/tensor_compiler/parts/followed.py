"""The base of decompositions that describe candidates by following them with their cursor."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load
from bbo_suite.parts.cursor import KEY, Cursor, Function
from bbo_suite.parts.decomposition import Decomposition, Description

compiled = compiled_for(__file__)


class FollowedDecomposition(Decomposition):
    """Parts at places whose keys are kept; a subclass makes the cursor.

    Attributes:
      keys: `(places,)` uint64, those of the last candidate, 0 where there is no part.
      runs: `(places,)` counts of parts.
    """

    keys: NDArray[np.uint64]
    runs: NDArray[np.float64]

    @abstractmethod
    def new_cursor(self) -> Cursor:
        """Return the cursor, at any candidate."""

    @cached_property
    def _cursor(self) -> Cursor:
        return self.new_cursor()

    def cursor(self, config: NDArray) -> Cursor:
        """Return a cursor at a `(d,)` candidate."""
        self._cursor.set(np.arange(len(config)), config)
        return self._cursor

    def describe(self, configs: NDArray) -> Description:
        """Return the kernels of `(n, d)` candidates."""
        starts, keys, counts, features = [0], [], [], []
        for config in configs:
            cursor = self.cursor(config)
            places = np.flatnonzero(self.keys)
            keys.append(self.keys[places])
            counts.append(self.runs[places])
            features.append(np.empty((len(places), len(self.feature_names))))
            _read(cursor.describe, cursor.handle, places, features[-1])
            starts.append(starts[-1] + len(places))
        return Description(np.array(starts), np.concatenate(keys), np.concatenate(counts), np.concatenate(features))


@compiled()
def _read(describe: Any, handle: int, places: NDArray, features: NDArray) -> None:  # noqa: ANN401
    for i in range(len(places)):
        describe(handle, places[i], features[i])


def key_reader(cursor_type: str) -> Function:
    """Return the function that reads the key of a part, of cursors with `keys` and `places` (see `KEY`)."""

    @compiled.callback(KEY)
    def _read_key(address: int, place: int, key: NDArray) -> float:
        cursor = load(address, cursor_type)
        key[0] = cursor.keys[place]
        return cursor.places.runs[place] if key[0] != 0 else 0.0

    return Function(_read_key, KEY)


@compiled(runtime=False)
def report(place: int, key: np.uint64, keys: NDArray, touched: NDArray, count: int) -> int:
    """Keep the key of the part at a place; if it is new, the place joins the `count` touched ones. Return their number.

    Places beyond the room in `touched` are only counted.
    """
    if keys[place] == key:
        return count
    keys[place] = key
    if count < len(touched):
        touched[count] = place
    return count + 1


@compiled(runtime=False)
def reported(count: int, touched: NDArray) -> int:
    """Return the result of a change (see `CHANGE`) that touched so many places."""
    return count if count <= len(touched) else -1
