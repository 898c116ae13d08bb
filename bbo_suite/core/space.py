"""The search space: arrays of sizes, kinds and groups; small ones are built by hand with `product`."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from .constraint import Component, Constraint, all_different, keep_unchanged, tie

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

Names = Callable[[int], str] | Sequence[str] | None
Values = Callable[[int], Sequence[Any]] | Sequence[Sequence[Any]] | None


class Kind(IntEnum):
    """How the values of a parameter relate to each other."""

    CHOICE = 0  # unordered
    SCALE = 1  # ordered
    SLOT = 2  # one position of a sequence or a permutation


class Space:
    """A finite product of parameters, without the combinations that known constraints forbid.

    A candidate is a row of `d` indices; a batch is an `(n, d)` array of `dtype`, the smallest signed integer type that
    holds the largest index.

    Args:
      sizes: `(d,)` the number of values of each parameter, at least 1.
      kinds: `(d,)` of `Kind` (default: all choices).
      groups: `(d,)` the number of a slot's sequence, whose slots are adjacent; -1 for other kinds.
      permutations: the groups that are permutations: n slots with n values each, all distinct.
      constraints: rules over a few parameters each.
      names: the names of the parameters, or a function of i.
      values: the values of each parameter, or a function of i (default: the indices).

    Raises:
      ValueError: arrays of different lengths, sizes below 1, a broken group, or constraints that forbid everything.
    """

    def __init__(
        self,
        sizes: ArrayLike,
        kinds: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        permutations: Collection[int] = (),
        constraints: Sequence[Constraint] = (),
        names: Names = None,
        values: Values = None,
    ) -> None:
        if np.size(sizes) and not np.issubdtype(np.asarray(sizes).dtype, np.integer):
            raise ValueError(f"sizes are {np.asarray(sizes).dtype}, not integers")
        self.sizes: NDArray[np.int64] = np.array(sizes, np.int64).reshape(-1)
        d = len(self.sizes)
        self.kinds: NDArray[np.int8] = np.zeros(d, np.int8) if kinds is None else np.array(kinds, np.int8)
        self.groups: NDArray[np.int32] = np.full(d, -1, np.int32) if groups is None else np.array(groups, np.int32)
        if self.kinds.shape != (d,) or self.groups.shape != (d,):
            raise ValueError(f"sizes, kinds and groups differ in length: {d}, {self.kinds.shape}, {self.groups.shape}")
        if d == 0 or self.sizes.min() < 1:
            raise ValueError("a space needs at least one parameter, and every parameter at least one value")
        if ((self.kinds == Kind.SLOT) != (self.groups >= 0)).any():
            raise ValueError("slots, and only slots, belong to a group")
        self.slots = _spans(self.groups)
        uneven = np.flatnonzero((np.diff(self.groups) == 0) & (self.groups[1:] >= 0) & (np.diff(self.sizes) != 0))
        if len(uneven):
            raise ValueError(f"the slots of group {self.groups[uneven[0]]} differ in their number of values")
        self.permutations = frozenset(permutations)
        tied_columns = {column for constraint in constraints for column in constraint.parameters}
        tied, self.free_permutations = self._divided_permutations(tied_columns)
        self.components: tuple[Component, ...] = tuple(tie(self.sizes, [*constraints, *tied]))
        self.dtype: np.dtype = np.dtype(next(t for t in (np.int8, np.int16, np.int32, np.int64) if self.fits(t)))
        self._names, self._values = names, values
        keep_unchanged(self)

    def fits(self, dtype: type[np.signedinteger]) -> bool:
        """Return True if the integer type can hold the largest index."""
        return int(self.sizes.max()) - 1 <= np.iinfo(dtype).max

    def _divided_permutations(self, tied_columns: set[int]) -> tuple[list[Constraint], tuple[tuple[int, int], ...]]:
        """Return the constraints of permutations that share columns with others, and the spans of the free ones."""
        tied, free = [], []
        for group in sorted(self.permutations):
            if group not in self.slots:
                raise ValueError(f"permutation group {group} has no slots")
            start, stop = self.slots[group]
            if (self.sizes[start:stop] != stop - start).any():
                raise ValueError(f"a permutation of {stop - start} slots needs {stop - start} values in each")
            if tied_columns & set(range(start, stop)):
                tied += [all_different(range(start, end)) for end in range(start + 1, stop + 1)]  # prefixes prune early
            else:
                free.append((start, stop))
        return tied, tuple(free)

    def __repr__(self) -> str:
        """Return the number of parameters of each kind and of candidates."""
        counts = {kind: int((self.kinds == kind).sum()) for kind in Kind}
        kinds = ", ".join(f"{count:,} {kind.name.lower()}" for kind, count in counts.items() if count)
        return f"Space({len(self):,} parameters: {kinds}; {count_text(self.cardinality)} candidates)"

    def __len__(self) -> int:
        """Return the number of parameters."""
        return len(self.sizes)

    @property
    def cardinality(self) -> int:
        """The exact number of allowed candidates."""
        free = np.ones(len(self), bool)
        factors = [len(component.rows) for component in self.components]
        factors += [math.factorial(stop - start) for start, stop in self.free_permutations]
        for component in self.components:
            free[component.columns] = False
        for start, stop in self.free_permutations:
            free[start:stop] = False
        counts = np.unique_counts(self.sizes[free])
        factors += [int(s) ** int(n) for s, n in zip(counts.values, counts.counts, strict=True)]
        return math.prod(factors)

    def sample(self, n: int, rng: Generator) -> NDArray:
        """Return `(n, d)` allowed candidates, drawn uniformly and independently."""
        high = int(self.sizes[0]) if (self.sizes == self.sizes[0]).all() else self.sizes
        configs = rng.integers(0, high, (n, len(self)), dtype=np.int64 if np.ndim(high) else self.dtype.type)
        configs = configs.astype(self.dtype, copy=False)
        for start, stop in self.free_permutations:
            configs[:, start:stop] = rng.permuted(np.tile(np.arange(stop - start), (n, 1)), axis=1)
        for component in self.components:
            configs[:, component.columns] = component.rows[rng.integers(0, len(component.rows), n)]
        return configs

    def allowed(self, configs: NDArray) -> NDArray[np.bool_]:
        """Return `(n,)` booleans: True for rows that the constraints allow. The indices must be in range."""
        good = np.ones(len(configs), bool)
        for component in self.components:
            good &= component.allows(configs)
        for start, stop in self.free_permutations:
            good &= (np.sort(configs[:, start:stop], axis=1) == np.arange(stop - start)).all(axis=1)
        return good

    def check(self, configs: Any) -> NDArray:  # noqa: ANN401 - whatever a plugin returned
        """Return a batch as a contiguous array of `dtype`.

        Raises:
          ValueError: it is not an `(n, d)` array of integers in range; the message names the row and column.
        """
        rows = np.asarray(configs)
        if rows.ndim != 2 or rows.shape[1] != len(self):
            raise ValueError(f"candidates have shape {rows.shape}, not (n, {len(self)})")
        if not np.issubdtype(rows.dtype, np.integer):
            raise ValueError(f"candidates are {rows.dtype}, not integers: they are indices of values")
        if rows.size and (rows.min() < 0 or (rows.max(axis=0) >= self.sizes).any()):
            i, j = np.argwhere((rows < 0) | (rows >= self.sizes))[0]
            known = f"{self.name(j)!r} has indices 0 to {self.sizes[j] - 1}"
            raise ValueError(f"candidate {i} has index {rows[i, j]}, but {known}")
        return np.ascontiguousarray(rows, self.dtype)

    def digests(self, configs: NDArray) -> list[str]:
        """Return a hash of 16 hexadecimal digits for each row, the same on every machine."""
        rows = np.ascontiguousarray(configs, self.dtype.newbyteorder("<"))
        return [hashlib.blake2b(row, digest_size=8).hexdigest() for row in rows]

    def pack(self, config: NDArray) -> str:
        """Return a row as text: one digit per parameter if all have 62 values or fewer, else numbers and dashes."""
        if int(self.sizes.max()) <= len(DIGITS):
            return "".join(map(DIGITS.__getitem__, config.tolist()))
        return "-".join(map(str, config.tolist()))

    def unpack(self, text: str) -> NDArray:
        """Return the row from the text that `pack` returned.

        Raises:
          ValueError: the text is not a row of this space.
        """
        short = int(self.sizes.max()) <= len(DIGITS)
        try:
            numbers = [DIGITS.index(c) for c in text] if short else [int(c) for c in text.split("-")]
            return self.check(np.array([numbers], np.int64))[0]
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{text[:40]!r} is not a row of this space: {error}") from None

    def name(self, i: int) -> str:
        """Return the name of parameter `i`."""
        if self._names is None:
            return f"x{i}"
        return self._names(int(i)) if callable(self._names) else self._names[int(i)]

    def values(self, i: int) -> Sequence[Any]:
        """Return the values of parameter `i` in the order of their indices."""
        if self._values is None:
            return range(int(self.sizes[i]))
        return self._values(int(i)) if callable(self._values) else self._values[int(i)]

    def describe(self, config: NDArray) -> dict[str, Any]:
        """Return the value of every parameter by name."""
        return {self.name(i): self.values(i)[index] for i, index in enumerate(config.tolist())}

    def row(self, values: Mapping[str, Any]) -> NDArray:
        """Return the `(d,)` row that `describe` turns into these values.

        Raises:
          ValueError: a parameter is missing or unknown, or has no such value.
        """
        names = [self.name(i) for i in range(len(self))]
        if odd := {*names} ^ {*values}:
            raise ValueError(f"{sorted(odd, key=str)[0]!r} is {'missing' if odd & {*names} else 'no parameter'}")
        row = np.zeros(len(self), self.dtype)
        for i, name in enumerate(names):
            if values[name] not in (known := list(self.values(i))):
                raise ValueError(f"{name!r} has no value {values[name]!r}")
            row[i] = known.index(values[name])
        return row

    def digest(self) -> str:
        """Return a hash of the set of candidates, their kinds and their encoding."""
        state = hashlib.sha256()
        for array in (self.sizes, self.kinds, self.groups, np.array(sorted(self.permutations), np.int64)):
            state.update(np.ascontiguousarray(array).astype("<i8").tobytes() + b"|")
        for component in self.components:
            state.update(component.columns.astype("<i8").tobytes() + component.keys.astype("<i8").tobytes())
        return state.hexdigest()[:16]


def count_text(count: int) -> str:
    """Return a number as text, however large it is: `1,024`, or `about 10^30`."""
    return f"{count:,}" if count < 10**15 else f"about 10^{int(math.log10(count))}"


def row_text(config: NDArray) -> str:
    """Return the first indices of a row."""
    return f"[{', '.join(map(str, config[:8].tolist()))}{', ...' if len(config) > 8 else ''}]"


def _spans(groups: NDArray[np.int32]) -> dict[int, tuple[int, int]]:
    """Return the columns `[start, stop)` of each group of slots."""
    edges = np.flatnonzero(np.diff(groups, prepend=-2, append=-2))
    spans: dict[int, tuple[int, int]] = {}
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        group = int(groups[start])
        if group in spans:
            raise ValueError(f"the slots of group {group} are not adjacent")
        if group >= 0:
            spans[group] = (start, stop)
    return spans


@dataclass(frozen=True)
class Parameter:
    """A named parameter, or a sequence of `length` slots with the same values."""

    name: str
    values: Sequence[Any]
    kind: Kind
    length: int = 1
    distinct: bool = False


def choice(name: str, values: Sequence[Any]) -> Parameter:
    """Return a parameter whose values have no order.

    Raises:
      ValueError: they are no list, or one occurs twice.
    """
    return Parameter(name, _listed(name, values), Kind.CHOICE)


def scale(name: str, values: Sequence[Any]) -> Parameter:
    """Return a parameter whose values are ordered, smallest first.

    Raises:
      ValueError: they are no list, one occurs twice, or they are numbers that do not ascend.
    """
    values = _listed(name, values)
    if all(isinstance(value, Real) for value in values) and not all(a < b for a, b in pairwise(values)):
        raise ValueError(f"the values of scale {name!r} are {repr(values)[:60]}; sort them, smallest first")
    return Parameter(name, values, Kind.SCALE)


def _listed(name: str, values: Any) -> Any:  # noqa: ANN401 - whatever a user gives
    if isinstance(values, Mapping) or not (hasattr(values, "__len__") and hasattr(values, "__getitem__")):
        raise ValueError(f"the values of parameter {name!r} are {repr(values)[:60]}; give a list")
    value, many = Counter((type(each), repr(each)) for each in values).most_common(1)[0] if len(values) else ("", 1)
    if many > 1:
        raise ValueError(f"parameter {name!r} has the value {value[1][:60]} twice; drop one of the two")
    return values


def sequence(name: str, length: int, values: Sequence[Any]) -> Parameter:
    """Return a sequence of `length` slots; each holds any of the values.

    Raises:
      ValueError: the length is not 1 or more.
    """
    if not isinstance(length, int | np.integer) or length < 1:
        raise ValueError(f"the length of sequence {name!r} is {length!r}; give a whole number from 1 on")
    return Parameter(name, values, Kind.SLOT, length)


def permutation(name: str, values: Sequence[Any]) -> Parameter:
    """Return a sequence with one slot per value that uses every value once."""
    return Parameter(name, values, Kind.SLOT, len(values), distinct=True)


def product(*parameters: Parameter, constraints: Sequence[Constraint] = ()) -> Space:
    """Return the space of the parameters.

    Args:
      constraints: rules over columns of the space; a sequence of n slots has n columns.

    Raises:
      ValueError: something is no parameter, two have the same name, or `Space` refuses the arguments.
    """
    if strange := [each for each in parameters if not isinstance(each, Parameter)]:
        raise ValueError(
            f"product takes parameters one by one, such as choice('x', [1, 2]), not {repr(strange[0])[:60]}"
        )
    slots = (f"{p.name}[{i}]" for p in parameters if p.kind is Kind.SLOT for i in range(p.length))
    twice = [name for name, many in Counter([*(p.name for p in parameters), *slots]).items() if many > 1]
    if twice:
        raise ValueError(f"parameter {min(twice)!r} occurs twice; give each parameter its own name")
    owners = [p for p in parameters for _ in range(p.length)]
    places = [i for p in parameters for i in range(p.length)]
    numbers = [number for number, p in enumerate(parameters) for _ in range(p.length)]
    return Space(
        sizes=[len(p.values) for p in owners],
        kinds=[p.kind for p in owners],
        groups=[n if p.kind is Kind.SLOT else -1 for n, p in zip(numbers, owners, strict=True)],
        permutations=[n for n, p in enumerate(parameters) if p.distinct],
        constraints=constraints,
        names=[f"{p.name}[{i}]" if p.kind is Kind.SLOT else p.name for p, i in zip(owners, places, strict=True)],
        values=[p.values for p in owners],
    )
