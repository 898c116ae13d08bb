"""A decomposition by a table: each part depends on a few parameters of its own, as a kernel does on its tile."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..compiled import compiled_for, handle, load, mix
from .cursor import CHANGE, DESCRIBE, KEY, Cursor, Function
from .decomposition import Decomposition, Description
from .users import set_and_touch, users_of

compiled = compiled_for(__file__)


class _Table(NamedTuple):
    """The arrays that compiled code reads, with `config`, the candidate of the cursor.

    Attributes:
      starts, columns: the parameters of part p are `columns[starts[p]:starts[p + 1]]`.
      users, parts: the parts that depend on parameter i are `parts[users[i]:users[i + 1]]`.
      contents, counts, features, numbers: as in `TableDecomposition`.
    """

    config: NDArray[np.int64]
    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    users: NDArray[np.int64]
    parts: NDArray[np.int64]
    contents: NDArray[np.uint64]
    counts: NDArray[np.float64]
    features: NDArray[np.float64]
    numbers: NDArray[np.float64]


class TableDecomposition(Decomposition):
    """Every candidate has the same p parts; what each is depends on a few of the d parameters.

    Args:
      depends: for each part, the parameters that it depends on.
      contents: `(p,)` uint64, a hash of what a part is besides its parameters. Two parts are the same if their contents
        and the indices of their parameters are.
      counts: `(p,)` how often every candidate contains the part.
      features: `(p, f)` of each part.
      feature_names: `f` names.
      numbers: `(d, w)` a number for each index of a parameter, such as the size of a tile; they follow the features.
    """

    def __init__(
        self,
        depends: list[NDArray[np.int64]],
        contents: NDArray[np.uint64],
        counts: NDArray[np.float64],
        features: NDArray[np.float64],
        feature_names: tuple[str, ...],
        numbers: NDArray[np.float64],
    ) -> None:
        d = len(numbers)
        lengths = [len(columns) for columns in depends]
        columns, owners = np.concatenate(depends).astype(np.int64), np.repeat(np.arange(len(depends)), lengths)
        users, parts = users_of(columns, owners, d)
        self.feature_names = (*feature_names, *(f"parameter {i}" for i in range(max(lengths))))
        self._table = _Table(
            config=np.zeros(d, np.int64),
            starts=np.concatenate([[0], np.cumsum(lengths)]),
            columns=columns,
            users=users,
            parts=parts,
            contents=np.ascontiguousarray(contents, np.uint64),
            counts=np.ascontiguousarray(counts, np.float64),
            features=np.ascontiguousarray(features, np.float64),
            numbers=np.ascontiguousarray(numbers, np.float64),
        )
        self._handle = handle(self._table)

    @property
    def is_separable(self) -> bool:
        """Whether no parameter decides two parts."""
        return bool(np.diff(self._table.users).max(initial=0) <= 1)

    def describe(self, configs: NDArray) -> Description:
        """Return the parts of `(n, d)` candidates."""
        n, p = len(configs), len(self._table.contents)
        keys, features = np.empty(n * p, np.uint64), np.zeros((n * p, len(self.feature_names)))
        _describe(self._table, np.ascontiguousarray(configs, np.int64), keys, features)
        return Description(np.arange(0, n * p + 1, p), keys, np.tile(self._table.counts, n), features)

    def cursor(self, config: NDArray) -> Cursor:
        """Return a cursor at a `(d,)` candidate."""
        self._table.config[:] = config
        return Cursor(*_FUNCTIONS, self._handle, len(self._table.contents), len(self.feature_names), self)


_INTEGERS, _NUMBERS = types.Array(types.int64, 1, "C"), types.Array(types.float64, 1, "C")
_ROWS = types.Array(types.float64, 2, "C")
_TYPE = types.NamedTuple((*[_INTEGERS] * 5, types.Array(types.uint64, 1, "C"), _NUMBERS, _ROWS, _ROWS), _Table)


@compiled(runtime=False)
def _key_of(table: _Table, part: int, config: NDArray) -> np.uint64:
    key = table.contents[part]
    for i in range(table.starts[part], table.starts[part + 1]):
        key = mix(key, np.uint64(config[table.columns[i]]))
    return key


@compiled(runtime=False)
def _write_features(table: _Table, part: int, config: NDArray, features: NDArray) -> None:
    given = table.features.shape[1]
    for i in range(len(features)):
        features[i] = table.features[part, i] if i < given else 0.0
    for i in range(table.starts[part], table.starts[part + 1]):
        column = table.columns[i]
        features[given + i - table.starts[part]] = table.numbers[column, config[column]]


@compiled(runtime=False)
def _describe(table: _Table, configs: NDArray, keys: NDArray, features: NDArray) -> None:
    count = len(table.contents)
    for b in range(len(configs)):
        for part in range(count):
            keys[b * count + part] = _key_of(table, part, configs[b])
            _write_features(table, part, configs[b], features[b * count + part])


@compiled.callback(CHANGE)
def _change(address: int, columns: NDArray, values: NDArray, touched: NDArray) -> int:
    table: Any = load(address, _TYPE)
    return set_and_touch(columns, values, table.config, table.users, table.parts, touched)


@compiled.callback(KEY)
def _key(address: int, place: int, key: NDArray) -> float:
    table: Any = load(address, _TYPE)
    key[0] = _key_of(table, place, table.config)
    return table.counts[place]


@compiled.callback(DESCRIBE)
def _features(address: int, place: int, features: NDArray) -> None:
    table: Any = load(address, _TYPE)
    _write_features(table, place, table.config, features)


_FUNCTIONS = Function(_change, CHANGE), Function(_key, KEY), Function(_features, DESCRIBE)
