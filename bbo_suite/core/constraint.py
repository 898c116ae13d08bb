"""Known constraints: which combinations of values a compiler forbids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LARGEST_TABLE = 1 << 22
"""Most combinations that one set of tied parameters may have while its table of allowed rows is built."""


@dataclass(frozen=True)
class Constraint:
    """A rule over a few parameters.

    Attributes:
      parameters: the columns that the rule looks at, k of them.
      allowed: takes an `(n, k)` array of indices and returns an `(n,)` array of booleans.
      rows: `(m, k)` every row that is allowed, where they are known: then no table has to be grown.
    """

    parameters: tuple[int, ...]
    allowed: Callable[[NDArray], NDArray]
    rows: NDArray | None = None


@dataclass(frozen=True)
class Component:
    """Parameters that constraints tie together, with every row of them that is allowed.

    Holding the table makes sampling uniform, counting exact and membership a binary search. The idea of independent
    groups with a table (a tree) each is from BaCO (Hellsten et al. 2022, section 4).

    Attributes:
      columns: `(k,)` columns of the space, ascending.
      rows: `(m, k)` allowed rows in ascending order of their keys.
      keys: `(m,)` numbers of the rows: mixed-radix, or hashes where the product of the columns is beyond 2^62.
      sizes: `(k,)` number of values of each column.
      weights: `(k,)` what the keys are the sums of indices by, modulo 2^64.
    """

    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    sizes: NDArray[np.int64]
    weights: NDArray[np.int64]

    def allows(self, configs: NDArray) -> NDArray[np.bool_]:
        """Return `(n,)` booleans: is the row's part in the table? `configs` holds indices within range."""
        part = configs[:, self.columns]
        wanted = _keys(part, self.weights)
        places = self._nearest(wanted)
        good = self.keys[places] == wanted
        if _is_beyond(self.sizes):  # two rows may have one hash
            good[good] = (self.rows[places[good]] == part[good]).all(axis=1)
        return good

    def places(self, configs: NDArray) -> NDArray[np.int64]:
        """Return `(n,)` which row of the table each allowed row's part is."""
        return self._nearest(_keys(configs[:, self.columns], self.weights))

    def _nearest(self, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)


def listed(rows: NDArray) -> Constraint:
    """Return the constraint that allows the rows `(m, d)` of a whole space and nothing else."""
    columns = tuple(range(rows.shape[1]))
    return Constraint(columns, lambda wanted: np.ones(len(wanted), bool), rows)


def table(columns: Sequence[int], rows: NDArray, sizes: NDArray[np.int64]) -> Component:
    """Return the table of `(m, k)` allowed rows, in whatever order and however often each is given."""
    own, rows = sizes[list(columns)], rows.astype(np.int64)
    for weights in _weights(own):
        keys = _keys(rows, weights)
        order = np.argsort(keys, kind="stable")
        rows, keys = rows[order], keys[order]
        again = np.flatnonzero(keys[1:] == keys[:-1])
        if (rows[again] == rows[again + 1]).all():  # else two rows have one hash
            break
    return Component(np.asarray(columns), np.delete(rows, again, 0), np.delete(keys, again), own, weights)


def tie(sizes: NDArray[np.int64], constraints: Sequence[Constraint]) -> list[Component]:
    """Group the parameters that constraints connect and build each group's table.

    Raises:
      ValueError: a constraint names no column or one that is not there, answers with a wrong shape, forbids everything,
        or ties too many combinations.
    """
    for constraint in constraints:
        if not constraint.parameters:
            raise ValueError("a constraint names no columns; name those that it looks at")
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
    """Take the table that a constraint brings, or grow it; both are filtered by what the constraints say."""
    own = [c for c in constraints if set(c.parameters) <= set(columns)]
    known = [c for c in own if c.rows is not None and set(c.parameters) == set(columns)]
    if known:
        assert known[0].rows is not None
        rows = known[0].rows[:, np.argsort(known[0].parameters)]
        for constraint in own:
            rows = rows[_answer(constraint, rows[:, [columns.index(c) for c in constraint.parameters]])]
    else:
        rows = _grown(columns, sizes, own)
    if not len(rows):
        raise ValueError(f"constraints on columns {columns} forbid every combination")
    return table(columns, rows, sizes)


def _grown(columns: list[int], sizes: NDArray[np.int64], constraints: Sequence[Constraint]) -> NDArray[np.int64]:
    """Grow a table column by column and filter as soon as a constraint has all its columns."""
    rows = np.zeros((1, 0), np.int64)
    for width, column in enumerate(columns, start=1):
        if len(rows) * int(sizes[column]) > LARGEST_TABLE:
            raise ValueError(f"constraints tie {len(columns)} parameters with more than {LARGEST_TABLE:,} combinations")
        values = np.tile(np.arange(sizes[column]), len(rows))
        rows = np.column_stack([np.repeat(rows, sizes[column], axis=0), values])
        for constraint in constraints:
            if max(constraint.parameters) == column and set(constraint.parameters) <= set(columns[:width]):
                rows = rows[_answer(constraint, rows[:, [columns.index(c) for c in constraint.parameters]])]
    return rows


def _answer(constraint: Constraint, rows: NDArray) -> NDArray[np.bool_]:
    answer = np.asarray(constraint.allowed(rows), bool)
    if answer.shape != (len(rows),):
        shapes = f"{answer.shape} for {rows.shape} indices; return one boolean a row"
        raise ValueError(f"the constraint on columns {constraint.parameters} answered with shape {shapes}")
    return answer


def _keys(rows: NDArray, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return rows.astype(np.int64) @ weights  # wraps where the weights are those of a hash


def _weights(sizes: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the weights of mixed-radix numbers, or where these do not fit, those of one hash after another."""
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
