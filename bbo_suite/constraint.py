"""Known constraints: which combinations of values a compiler forbids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """

    parameters: tuple[int, ...]
    allowed: Callable[[NDArray], NDArray]


@dataclass(frozen=True)
class Component:
    """Parameters that constraints tie together, with every row of them that is allowed.

    Holding the table makes sampling uniform, counting exact and membership a binary search. The idea of independent
    groups with a table (a tree) each is from BaCO (Hellsten et al. 2022, section 4).

    Attributes:
      columns: `(k,)` columns of the space, ascending.
      rows: `(m, k)` allowed rows in ascending order of their keys.
      keys: `(m,)` mixed-radix numbers of the rows.
      sizes: `(k,)` number of values of each column.
    """

    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def allows(self, configs: NDArray) -> NDArray[np.bool_]:
        """Return `(n,)` booleans: is the row's part in the table? `configs` holds indices within range."""
        wanted = _keys(configs[:, self.columns], self.sizes)
        return self.keys[self._nearest(wanted)] == wanted

    def places(self, configs: NDArray) -> NDArray[np.int64]:
        """Return `(n,)` which row of the table each allowed row's part is."""
        return self._nearest(_keys(configs[:, self.columns], self.sizes))

    def _nearest(self, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)


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
    """Grow the table column by column and filter as soon as a constraint has all its columns."""
    rows = np.zeros((1, 0), np.int64)
    for width, column in enumerate(columns, start=1):
        if len(rows) * int(sizes[column]) > LARGEST_TABLE:
            raise ValueError(f"constraints tie {len(columns)} parameters with more than {LARGEST_TABLE:,} combinations")
        values = np.tile(np.arange(sizes[column]), len(rows))
        rows = np.column_stack([np.repeat(rows, sizes[column], axis=0), values])
        for constraint in constraints:
            if max(constraint.parameters) == column and set(constraint.parameters) <= set(columns[:width]):
                rows = rows[_answer(constraint, rows[:, [columns.index(c) for c in constraint.parameters]])]
    if not len(rows):
        raise ValueError(f"constraints on columns {columns} forbid every combination")
    own_sizes = sizes[columns]
    if np.prod(own_sizes.astype(float)) > 2.0**62:
        raise ValueError(f"constraints tie {len(columns)} parameters whose product is beyond 2^62")
    return Component(np.asarray(columns), rows, _keys(rows, own_sizes), own_sizes)


def _answer(constraint: Constraint, rows: NDArray) -> NDArray[np.bool_]:
    answer = np.asarray(constraint.allowed(rows), bool)
    if answer.shape != (len(rows),):
        shapes = f"{answer.shape} for {rows.shape} indices; return one boolean a row"
        raise ValueError(f"the constraint on columns {constraint.parameters} answered with shape {shapes}")
    return answer


def _keys(rows: NDArray, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    weights = np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]])
    return rows.astype(np.int64) @ weights


def all_different(columns: Sequence[int]) -> Constraint:
    """Return the constraint that the columns hold distinct indices, as a permutation does."""

    def distinct(rows: NDArray) -> NDArray[np.bool_]:
        ordered = np.sort(rows, axis=1)
        return (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)

    return Constraint(tuple(columns), distinct)
