"""The values of one parameter as indices."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_EXACT = 2.0**53


@dataclass(frozen=True)
class Codes:
    """A column as `(n,)` indices into its distinct values, for columns too long to be held as values."""

    indices: NDArray[np.int64]
    values: list[str]


Column = Sequence[Any] | NDArray | Codes


def encode(column: Column, place: str) -> tuple[NDArray[np.int64], list[Any], bool]:
    """Return the `(n,)` indices of a column, its distinct values, and whether these are numbers in ascending order.

    Other values are sorted by their text, so that nothing depends on the order of measurements.

    Raises:
      ValueError: a value is NaN or infinite; `place` says where.
    """
    if isinstance(column, np.ndarray):
        if not np.isfinite(column).all():
            raise ValueError(f"{place} has a value that is not finite; leave that row out")
        distinct, indices = np.unique(column, return_inverse=True)
        return indices.astype(np.int64), distinct.tolist(), True
    if isinstance(column, Codes):
        order = sorted(range(len(column.values)), key=column.values.__getitem__)
        return np.argsort(order)[column.indices], [column.values[i] for i in order], False
    keys = [value_key(value, place) for value in column]
    values = dict(zip(keys, column, strict=True))
    numeric = all(kind == "number" for kind, _ in values)
    sort = sorted(values, key=(lambda key: key[1]) if numeric else (lambda key: (key[0], str(key[1]))))
    index_of = {key: index for index, key in enumerate(sort)}
    indices = np.fromiter((index_of[key] for key in keys), np.int64, len(keys))
    return indices, [display_value(values[key]) for key in sort], numeric


def value_key(value: Any, place: str) -> tuple[str, Any]:  # noqa: ANN401 - whatever JSON holds
    """Return a key that differs for different values: in Python `1 == True`, but a space may have both."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, list, dict)):
        return type(value).__name__, display_value(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place} has the value {value}; leave that row out")
    return "number", display_value(value)


def display_value(value: Any) -> Hashable:  # noqa: ANN401 - whatever JSON holds
    """Return a value as it is shown in the space: lists and objects as text, 16.0 as 16."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return json.dumps(value, sort_keys=True) if isinstance(value, (list, dict)) else value
