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

    def part(self, place: int) -> tuple[int, float, NDArray[np.float64]]:
        """Return the key, the count and the `(f,)` features of the part at a place; the count is 0 if it is empty."""
        key, features = np.zeros(1, np.uint64), np.zeros(self.width)
        count = _call_key(self.key, self.handle, place, key)
        if count:
            _call_describe(self.describe, self.handle, place, features)
        return int(key[0]), count, features


@compiled()
def _call_change(change: Any, handle: int, columns: NDArray, values: NDArray, touched: NDArray) -> int:  # noqa: ANN401
    return change(handle, columns, values, touched)


@compiled()
def _call_key(function: Any, handle: int, place: int, key: NDArray) -> float:  # noqa: ANN401
    return function(handle, place, key)


@compiled()
def _call_describe(function: Any, handle: int, place: int, features: NDArray) -> None:  # noqa: ANN401
    function(handle, place, features)
