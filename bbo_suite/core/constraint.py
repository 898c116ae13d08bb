"""Known constraints: combinations of values that the compiler forbids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LARGEST_TABLE = 1 << 22
"""The most combinations of constrained parameters that are tried while a table of allowed rows is built."""


@dataclass(frozen=True)
class Constraint:
    """A rule over a few parameters.

    Attributes:
      parameters: the k columns that the rule depends on.
      allowed: takes an `(n, k)` array of indices and returns an `(n,)` array of booleans.
      rows: `(m, k)` all allowed rows, if they are known; otherwise they are found by trying combinations.
    """

    parameters: tuple[int, ...]
    allowed: Callable[[NDArray], NDArray]
    rows: NDArray | None = None


@dataclass(frozen=True)
class Component:
    """Parameters that constraints connect, with a table of all their allowed rows.

    With the table, sampling is uniform, counting is exact and a membership test is a binary search. Independent groups
    with one table (a tree) each are from BaCO (Hellsten et al. 2022, section 4).

    Attributes:
      columns: `(k,)` columns of the space, ascending.
      rows: `(m, k)` allowed rows in ascending order of their keys.
      keys: `(m,)` mixed-radix numbers of the rows, or hashes if the product of the sizes exceeds 2^62.
      sizes: `(k,)` the number of values of each column.
      weights: `(k,)` a key is the sum of indices times weights, modulo 2^64.
    """

    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    sizes: NDArray[np.int64]
    weights: NDArray[np.int64]

    def __post_init__(self) -> None:
        keep_unchanged(self)

    def allows(self, configs: NDArray) -> NDArray[np.bool_]:
        """Return `(n,)` booleans: True if the row's part is in the table. The indices must be in range."""
        part = configs[:, self.columns]
        wanted = _keys(part, self.weights)
        places = self._nearest(wanted)
        good = self.keys[places] == wanted
        if _is_beyond(self.sizes):  # two rows may have the same hash
            good[good] = (self.rows[places[good]] == part[good]).all(axis=1)
        return good

    def places(self, configs: NDArray) -> NDArray[np.int64]:
        """Return `(n,)` positions in the table of the parts of allowed rows."""
        return self._nearest(_keys(configs[:, self.columns], self.weights))

    def _nearest(self, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)


def listed(rows: NDArray) -> Constraint:
    """Return the constraint that allows only the given `(m, d)` rows of a whole space."""
    columns = tuple(range(rows.shape[1]))
    return Constraint(columns, lambda wanted: np.ones(len(wanted), bool), rows)


def table(columns: Sequence[int], rows: NDArray, sizes: NDArray[np.int64]) -> Component:
    """Return the table of `(m, k)` allowed rows; order and duplicates do not matter."""
    own, rows = sizes[list(columns)], rows.astype(np.int64)
    for weights in _weights(own):
        keys = _keys(rows, weights)
        order = np.argsort(keys, kind="stable")
        rows, keys = rows[order], keys[order]
        again = np.flatnonzero(keys[1:] == keys[:-1])
        if (rows[again] == rows[again + 1]).all():  # else two rows have the same hash
            break
    return Component(np.asarray(columns), np.delete(rows, again, 0), np.delete(keys, again), own, weights)


def tie(sizes: NDArray[np.int64], constraints: Sequence[Constraint]) -> list[Component]:
    """Group the parameters that constraints connect and build each group's table.

    Raises:
      ValueError: a constraint names no column or an unknown one, returns a wrong shape, forbids everything, or connects
        too many combinations.
    """
    for constraint in constraints:
        if not constraint.parameters:
            raise ValueError("a constraint names no columns; name those that it depends on")
        if any(not 0 <= column < len(sizes) for column in constraint.parameters):
            raise ValueError(
                f"a constraint names columns {constraint.parameters} of a space of {len(sizes)} parameters"
            )
    groups: list[set[int]] = []
    for constraint in constraints:
        joined = set(constraint.parameters).union(*(g for g in groups if g & set(constraint.parameters)))
        groups = [g for g in groups if not g & joined] + [joined]
    return [_component(sorted(group), sizes, constraints) for group in groups]


def _component(columns: list[int], sizes: NDArray[np.int64], constraints: Sequence[Constraint]) -> Component:
    """Return the table that a constraint provides, or build it; either is filtered by all constraints."""
    own = [c for c in constraints if set(c.parameters) <= set(columns)]
    known = [c for c in own if c.rows is not None and set(c.parameters) == set(columns)]
    if known:
        assert known[0].rows is not None
        rows = known[0].rows[:, np.argsort(known[0].parameters)]
        for constraint in own:
            rows = rows[_answer(constraint, rows[:, [columns.index(c) for c in constraint.parameters]])]
    else:
        rows = _built(columns, sizes, own)
    if not len(rows):
        raise ValueError(f"constraints on columns {columns} forbid every combination")
    return table(columns, rows, sizes)


def _built(columns: list[int], sizes: NDArray[np.int64], constraints: Sequence[Constraint]) -> NDArray[np.int64]:
    """Build a table column by column; apply each constraint as soon as all its columns are there."""
    rows = np.zeros((1, 0), np.int64)
    for width, column in enumerate(columns, start=1):
        if len(rows) * int(sizes[column]) > LARGEST_TABLE:
            raise ValueError(
                f"constraints connect {len(columns)} parameters with more than {LARGEST_TABLE:,} combinations"
            )
        values = np.tile(np.arange(sizes[column]), len(rows))
        rows = np.column_stack([np.repeat(rows, sizes[column], axis=0), values])
        for constraint in constraints:
            if max(constraint.parameters) == column and set(constraint.parameters) <= set(columns[:width]):
                rows = rows[_answer(constraint, rows[:, [columns.index(c) for c in constraint.parameters]])]
    return rows


def _answer(constraint: Constraint, rows: NDArray) -> NDArray[np.bool_]:
    answer = np.asarray(constraint.allowed(rows), bool)
    if answer.shape != (len(rows),):
        shapes = f"{answer.shape} for {rows.shape} indices; return one boolean per row"
        raise ValueError(f"the constraint on columns {constraint.parameters} returned shape {shapes}")
    return answer


def _keys(rows: NDArray, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return rows.astype(np.int64) @ weights  # wraps where the weights are those of a hash


def _weights(sizes: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the weights of mixed-radix numbers or, if these do not fit into 64 bits, of one hash after another."""
    if not _is_beyond(sizes):
        yield np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]])
        return
    for base in range(0x9E3779B97F4A7C15, 1 << 64, 2):
        yield np.array([pow(base, 3 + i, 1 << 64) for i in range(len(sizes))], np.uint64).view(np.int64)


def _is_beyond(sizes: NDArray[np.int64]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.prod(sizes.astype(float)) > 2.0**62)


def all_different(columns: Sequence[int]) -> Constraint:
    """Return the constraint that the columns hold distinct indices, as a permutation does."""

    def distinct(rows: NDArray) -> NDArray[np.bool_]:
        ordered = np.sort(rows, axis=1)
        return (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)

    return Constraint(tuple(columns), distinct)


def keep_unchanged(holder: object) -> None:
    """Make the arrays that an object holds read-only: strategies share them."""
    for value in vars(holder).values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
