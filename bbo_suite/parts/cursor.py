"""A candidate whose parts are followed while parameters change: functions of a problem that compiled code calls.

A strategy's compiled search calls the compiled functions of a problem by their address, so that neither knows the
other, and the search is compiled once for all problems. A call takes some 30 ns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..compiled import compiled_for

compiled = compiled_for(__file__)
_INTEGERS, _FLOATS = types.Array(types.int64, 1, "C"), types.Array(types.float64, 1, "C")

CHANGE = types.int64(types.int64, _INTEGERS, _INTEGERS, _INTEGERS)
"""`change(handle, columns, values, touched)`: set some parameters, write the places whose parts may have changed to
`touched` and return their number, or return -1 if any place may have changed."""

KEY = types.float64(types.int64, types.int64, types.Array(types.uint64, 1, "C"))
"""`key(handle, place, key)`: write the key of the part at a place (one number) and return its count; 0 if there is no
part."""

DESCRIBE = types.void(types.int64, types.int64, _FLOATS)
"""`describe(handle, place, features)`: write the `(f,)` features of the part at a place."""


class Function(types.WrapperAddressProtocol):
    """A compiled function that compiled code calls by its address.

    Args:
      callback: made by `Compiler.callback(signature)`.
      signature: `CHANGE`, `KEY` or `DESCRIBE`.
    """

    def __init__(self, callback: Any, signature: Any) -> None:  # noqa: ANN401 - numba has no types for them
        self._callback, self._signature = callback, signature

    def __wrapper_address__(self) -> int:
        """Return the address."""
        return self._callback.address

    def signature(self) -> Any:  # noqa: ANN401
        """Return the types of its arguments and of its result."""
        return self._signature


@dataclass(frozen=True)
class Cursor:
    """A candidate whose parts are at `places` places, some of which may be empty.

    Attributes:
      change: sets parameters, see `CHANGE`.
      key: reads the key and the count of a part, see `KEY`.
      describe: reads the features of a part, see `DESCRIBE`.
      memory: what they work on; its address is the handle.
      places: the number of places.
      width: the number of features of a part.
      owner: keeps alive what the memory points to.
      whole: the parameters whose change makes all parts anew, which takes a hundred times as long as other changes.
    """

    change: Function
    key: Function
    describe: Function
    memory: NDArray[np.int64]
    places: int
    width: int
    owner: object
    whole: range = range(0)

    @property
    def handle(self) -> int:
        """The first argument of the functions."""
        return self.memory.ctypes.data

    def set(self, columns: NDArray, values: NDArray) -> NDArray[np.int64]:
        """Set parameters and return the places whose parts may have changed, ascending."""
        touched = np.empty(self.places, np.int64)
        columns, values = (np.ascontiguousarray(array, np.int64) for array in (columns, values))
        count = _call_change(self.change, self.handle, columns, values, touched)
        return np.arange(self.places) if count < 0 else np.unique(touched[:count])

    def parts(
        self, places: NDArray | None = None
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the `(m,)` keys, the `(m,)` counts and the `(m, f)` features of the parts at `(m,)` places, or at all.

        The count of an empty place is 0, and so are its features.
        """
        where = np.arange(self.places) if places is None else np.ascontiguousarray(places, np.int64)
        keys, counts = np.zeros(len(where), np.uint64), np.zeros(len(where))
        features = np.zeros((len(where), self.width))
        _read(self.key, self.describe, self.handle, where, keys, counts, features)
        return keys, counts, features


@compiled()
def _call_change(change: Any, handle: int, columns: NDArray, values: NDArray, touched: NDArray) -> int:  # noqa: ANN401
    return change(handle, columns, values, touched)


@compiled()
def _read(
    key: Any,  # noqa: ANN401
    describe: Any,  # noqa: ANN401
    handle: int,
    places: NDArray,
    keys: NDArray,
    counts: NDArray,
    features: NDArray,
) -> None:
    for i in range(len(places)):
        counts[i] = key(handle, places[i], keys[i : i + 1])
        if counts[i] != 0:
            describe(handle, places[i], features[i])
