"""A decomposition into parts that depend on one or two parameters each: the nodes and the edges of a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..compiled import compiled_for, handle, load
from .cursor import CHANGE, DESCRIBE, KEY, Cursor, Function
from .decomposition import Decomposition, Description
from .users import set_and_touch, users_of

compiled = compiled_for(__file__)


class _Pairs(NamedTuple):
    """The arrays that compiled code reads, with `config`, the candidate of the cursor.

    Attributes:
      users, parts: the parts that depend on parameter i are `parts[users[i]:users[i + 1]]`.
      The others are as in `PairDecomposition`; `second` is `first`, and `width` is 0, where a part has one parameter.
    """

    config: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    width: NDArray[np.int64]
    starts: NDArray[np.int64]
    users: NDArray[np.int64]
    parts: NDArray[np.int64]
    features: NDArray[np.float64]


class PairDecomposition(Decomposition):
    """Every candidate has p parts; each depends on one parameter, or on two.

    The key of a part is a place in a table of all costs: `starts + a` for index a of its only parameter,
    `starts + a * sizes[second] + b` for indices a and b of two. Two parts with equal `starts` have equal tables.

    Args:
      sizes: `(d,)` the number of values of each parameter.
      first: `(p,)` a parameter of each part.
      second: `(p,)` its other parameter, -1 if there is none.
      starts: `(p,)` where the table of each part begins.
      features: `(p, f)` of each part; the indices of its parameters follow, -1 for none.
      feature_names: `f` names.

    Attributes:
      length: the number of entries of all tables.
    """

    def __init__(
        self,
        sizes: NDArray[np.int64],
        first: NDArray[np.int64],
        second: NDArray[np.int64],
        starts: NDArray[np.int64],
        features: NDArray[np.float64],
        feature_names: tuple[str, ...],
    ) -> None:
        self.sizes, self.first, self.second, self.starts = sizes, first, second, starts
        width = np.where(second < 0, 1, sizes[second])
        self.length = int((starts + sizes[first] * width).max())
        self.feature_names = (*feature_names, "index 1", "index 2")
        p, paired = len(first), np.flatnonzero(second >= 0)
        depends, owners = np.concatenate([first, second[paired]]), np.concatenate([np.arange(p), paired])
        users, parts = users_of(depends, owners, len(sizes))
        self._pairs = _Pairs(
            config=np.zeros(len(sizes), np.int64),
            first=np.ascontiguousarray(first, np.int64),
            second=np.ascontiguousarray(np.where(second < 0, first, second), np.int64),
            width=np.where(second < 0, 0, width).astype(np.int64),
            starts=np.ascontiguousarray(starts, np.int64),
            users=users,
            parts=parts,
            features=np.ascontiguousarray(features, np.float64),
        )
        self._handle = handle(self._pairs)

    def places(self, configs: NDArray) -> NDArray[np.int64]:
        """Return the `(n, p)` keys of the parts of `(n, d)` candidates."""
        pairs, chosen = self._pairs, configs.astype(np.int64)
        return pairs.starts + np.where(
            pairs.width > 0, chosen[:, pairs.first] * pairs.width + chosen[:, pairs.second], chosen[:, pairs.first]
        )

    def describe(self, configs: NDArray) -> Description:
        """Return the parts of `(n, d)` candidates."""
        (n, _), p, pairs = configs.shape, len(self.first), self._pairs
        features = np.empty((n, p, len(self.feature_names)))
        features[:, :, :-2] = pairs.features
        features[:, :, -2] = configs[:, pairs.first]
        features[:, :, -1] = np.where(pairs.width > 0, configs[:, pairs.second], -1)
        keys = self.places(configs).astype(np.uint64).ravel()
        return Description(np.arange(0, n * p + 1, p), keys, np.ones(n * p), features.reshape(n * p, -1))

    def cursor(self, config: NDArray) -> Cursor:
        """Return a cursor at a `(d,)` candidate."""
        self._pairs.config[:] = config
        return Cursor(*_FUNCTIONS, self._handle, len(self.first), len(self.feature_names), self)


_TYPE = types.NamedTuple((*[types.Array(types.int64, 1, "C")] * 7, types.Array(types.float64, 2, "C")), _Pairs)


@compiled.callback(CHANGE)
def _change(address: int, columns: NDArray, values: NDArray, touched: NDArray) -> int:
    pairs: Any = load(address, _TYPE)
    return set_and_touch(columns, values, pairs.config, pairs.users, pairs.parts, touched)


@compiled.callback(KEY)
def _key(address: int, place: int, key: NDArray) -> float:
    pairs: Any = load(address, _TYPE)
    a, b, width = pairs.config[pairs.first[place]], pairs.config[pairs.second[place]], pairs.width[place]
    key[0] = np.uint64(pairs.starts[place] + (a * width + b if width > 0 else a))
    return 1.0


@compiled.callback(DESCRIBE)
def _describe(address: int, place: int, features: NDArray) -> None:
    pairs: Any = load(address, _TYPE)
    for i in range(len(features) - 2):
        features[i] = pairs.features[place, i]
    features[-2] = pairs.config[pairs.first[place]]
    features[-1] = pairs.config[pairs.second[place]] if pairs.width[place] > 0 else -1.0


_FUNCTIONS = Function(_change, CHANGE), Function(_key, KEY), Function(_describe, DESCRIBE)
