"""Decompositions by a table: each part depends on a few parameters of its own, as a kernel does on its tile."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..compiled import compiled_for, handle, load, mix
from .cursor import CHANGE, DESCRIBE, KEY, Cursor, Function
from .decomposition import Decomposition, Description

compiled = compiled_for(__file__)


class _Table(NamedTuple):
    """The arrays that compiled code reads, for p parts, with `config`, the candidate of the cursor.

    Attributes:
      starts, columns: the parameters of part p are `columns[starts[p]:starts[p + 1]]`.
      strides: for each of `columns`, by how much a step of the parameter raises the key; 0 where keys are hashes.
      users, parts: the parts that depend on parameter i are `parts[users[i]:users[i + 1]]`.
      contents: `(p,)` what the key of a part begins with.
      counts: `(p,)` how often every candidate contains the part.
      features: `(p, f)`; the last ones are replaced by what describes the parameters of a part, from column `first`.
      first: `(1,)` this column.
      numbers: `(d, w)` what describes each index of a parameter; without columns, the index itself does.
    """

    config: NDArray[np.int64]
    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    strides: NDArray[np.int64]
    users: NDArray[np.int64]
    parts: NDArray[np.int64]
    first: NDArray[np.int64]
    contents: NDArray[np.uint64]
    counts: NDArray[np.float64]
    features: NDArray[np.float64]
    numbers: NDArray[np.float64]


class _Tabulated(Decomposition):
    """Every candidate has the same p parts; see `_Table` for the arguments."""

    def __init__(
        self,
        depends: list[NDArray[np.int64]],
        strides: NDArray[np.int64],
        contents: NDArray,
        counts: NDArray[np.float64],
        features: NDArray[np.float64],
        feature_names: tuple[str, ...],
        numbers: NDArray[np.float64],
    ) -> None:
        self.feature_names = feature_names
        d, lengths = len(numbers), [len(columns) for columns in depends]
        columns, owners = np.concatenate(depends).astype(np.int64), np.repeat(np.arange(len(depends)), lengths)
        order = np.argsort(columns, kind="stable")
        self._table = _Table(
            config=np.zeros(d, np.int64),
            starts=np.concatenate([[0], np.cumsum(lengths)]),
            columns=columns,
            strides=np.ascontiguousarray(strides, np.int64),
            users=np.searchsorted(columns[order], np.arange(d + 1)).astype(np.int64),
            parts=owners[order].astype(np.int64),
            first=np.array([len(feature_names) - max(lengths)]),
            contents=np.ascontiguousarray(contents, np.uint64),
            counts=np.ascontiguousarray(counts, np.float64),
            features=np.ascontiguousarray(features, np.float64),
            numbers=np.ascontiguousarray(numbers, np.float64),
        )
        self._handle = handle(self._table)

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


class TableDecomposition(_Tabulated):
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
        lengths = [len(columns) for columns in depends]
        padded = np.hstack([features, np.zeros((len(depends), max(lengths)))])
        names = (*feature_names, *(f"parameter {i}" for i in range(max(lengths))))
        super().__init__(depends, np.zeros(sum(lengths), np.int64), contents, counts, padded, names, numbers)

    @property
    def is_separable(self) -> bool:
        """Whether no parameter decides two parts."""
        return bool(np.diff(self._table.users).max(initial=0) <= 1)


class PairDecomposition(_Tabulated):
    """Every candidate has p parts, the nodes and the edges of a graph: each depends on one parameter, or on two.

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
        widths = np.where(second < 0, 1, sizes[second])
        self.length = int((starts + sizes[first] * widths).max())
        pairs, steps = (np.stack(ends, axis=1) for ends in ((first, second), (widths, np.ones_like(widths))))
        depends, strides = [pair[pair >= 0] for pair in pairs], steps[pairs >= 0]
        padded, names = np.hstack([features, np.full((len(first), 2), -1.0)]), (*feature_names, "index 1", "index 2")
        super().__init__(depends, strides, starts, np.ones(len(first)), padded, names, np.empty((len(sizes), 0)))


_INTEGERS, _NUMBERS = types.Array(types.int64, 1, "C"), types.Array(types.float64, 1, "C")
_ROWS = types.Array(types.float64, 2, "C")
_TYPE = types.NamedTuple((*[_INTEGERS] * 7, types.Array(types.uint64, 1, "C"), _NUMBERS, _ROWS, _ROWS), _Table)


@compiled(runtime=False)
def _key_of(table: _Table, part: int, config: NDArray) -> np.uint64:
    key = table.contents[part]
    for i in range(table.starts[part], table.starts[part + 1]):
        index, stride = np.uint64(config[table.columns[i]]), np.uint64(table.strides[i])
        key = key + index * stride if stride > 0 else mix(key, index)
    return key


@compiled(runtime=False)
def _write_features(table: _Table, part: int, config: NDArray, features: NDArray) -> None:
    for i in range(len(features)):
        features[i] = table.features[part, i]
    first, is_index = table.first[0], table.numbers.shape[1] == 0
    for i in range(table.starts[part], table.starts[part + 1]):
        column = table.columns[i]
        number = float(config[column]) if is_index else table.numbers[column, config[column]]
        features[first + i - table.starts[part]] = number


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
    count = 0
    for i in range(len(columns)):
        table.config[columns[i]] = values[i]
        for j in range(table.users[columns[i]], table.users[columns[i] + 1]):
            if count < len(touched):
                touched[count] = table.parts[j]
            count += 1
    return count if count <= len(touched) else -1


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
