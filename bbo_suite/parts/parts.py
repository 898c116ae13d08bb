"""The parts of candidates: a compiler knows the cost of each kernel, function or group, not only their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

_TOLERANCE = 1e-9


@dataclass(frozen=True, repr=False)
class Parts:
    """The parts of n candidates, m in all, as compressed rows.

    Attributes:
      starts: `(n + 1,)` int64; the parts of candidate i are `starts[i]:starts[i + 1]` of the other arrays.
      keys: `(m,)` uint64, a hash of what a part is, the same in every process. Parts with equal keys have equal costs,
        apart from noise, or nearly always; see `Decomposition.exact`.
      counts: `(m,)` float64, how often the candidate contains the part, more than 0.
      costs: `(m,)` float64 of the part alone, 0 or more, in the problem's unit; inf if the part fails.
    """

    starts: NDArray[np.int64]
    keys: NDArray[np.uint64]
    counts: NDArray[np.float64]
    costs: NDArray[np.float64]

    @classmethod
    def of_none(cls, n: int) -> Self:
        """Return the parts of n candidates that have none, because they were not evaluated."""
        return cls(np.zeros(n + 1, np.int64), np.empty(0, np.uint64), np.empty(0), np.empty(0))

    def spread(self, places: NDArray[np.int64], n: int) -> Parts:
        """Return the parts of n candidates, of which those at `places`, ascending, have these and the others none."""
        lengths = np.zeros(n, np.int64)
        lengths[places] = np.diff(self.starts)
        return replace(self, starts=np.concatenate([[0], np.cumsum(lengths)]))

    def of_candidate(self, i: int) -> Parts:
        """Return the parts of candidate i alone."""
        own = slice(self.starts[i], self.starts[i + 1])
        return Parts(np.array([0, own.stop - own.start]), self.keys[own], self.counts[own], self.costs[own])

    def owners(self) -> NDArray[np.int64]:
        """Return the `(m,)` candidate that each part belongs to."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def merged(self) -> Parts:
        """Return the same parts in the order of their keys, each once for a candidate.

        If noise gave equal parts of a candidate different costs, the mean cost leaves the sum as it was.
        """
        order = np.lexsort((self.keys, self.owners()))
        owners, keys = self.owners()[order], self.keys[order]
        counts, costs = self.counts[order], self.costs[order]
        new = np.append(True, (owners[1:] != owners[:-1]) | (keys[1:] != keys[:-1]))[: len(keys)]
        first = np.flatnonzero(new)
        starts = np.searchsorted(owners[first], np.arange(len(self.starts)))
        if len(first) == len(keys):
            return Parts(starts, keys, counts, costs)
        summed = np.add.reduceat(counts, first)
        equal = np.maximum.reduceat(costs, first) == np.minimum.reduceat(costs, first)
        means = np.where(equal, costs[first], np.add.reduceat(counts * costs, first) / summed)
        return Parts(starts, keys[first], summed, means)

    def sums(self) -> NDArray[np.float64]:
        """Return the `(n,)` sums of counts times costs."""
        return np.bincount(self.owners(), self.counts * self.costs, len(self.starts) - 1).astype(np.float64)

    def __repr__(self) -> str:
        """Return the numbers of candidates, of parts and of different keys."""
        return f"Parts({len(self.starts) - 1:,} candidates, {len(self.keys):,} parts, {len(set(self.keys)):,} keys)"


def concatenated(batches: Sequence[Parts]) -> Parts:
    """Return the parts of the candidates of one or more batches, one batch after another."""
    lengths = np.concatenate([np.diff(parts.starts) for parts in batches])
    keys, counts, costs = (np.concatenate([getattr(p, name) for p in batches]) for name in ("keys", "counts", "costs"))
    return Parts(np.concatenate([[0], np.cumsum(lengths)]), keys, counts, costs)


def checked_parts(parts: object, n: int) -> Parts:
    """Return the parts of n candidates with the types of `Parts`.

    Raises:
      ValueError: they have another shape or type, or a number that cannot be.
    """
    if not isinstance(parts, Parts):
        raise ValueError(f"evaluate_parts returned {type(parts).__name__} as parts; return bbo_suite.Parts")
    starts, keys = _column(parts, "starts"), _column(parts, "keys")
    if starts.shape != (n + 1,) or starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != len(keys):
        raise ValueError(f"starts of the parts of {n} candidates must be {n + 1} numbers from 0 up to {len(keys)}")
    if keys.dtype != np.uint64:
        raise ValueError(f"the keys of parts have type {keys.dtype}; use uint64")
    counts, costs = _column(parts, "counts").astype(np.float64), _column(parts, "costs").astype(np.float64)
    for name, array, valid in (("counts", counts, (counts > 0) & (counts < np.inf)), ("costs", costs, costs >= 0)):
        if array.shape != keys.shape:
            raise ValueError(f"the {name} of parts have shape {array.shape} for {len(keys)} keys; return one for each")
        if not valid.all():
            place = int(np.flatnonzero(~valid)[0])
            raise ValueError(f"part {keys[place]:016x} has {array[place]} among its {name}; they use {_VALID[name]}")
    return Parts(starts.astype(np.int64), keys, counts, costs)


_VALID = {"counts": "more than 0", "costs": "0 or more"}


def _column(parts: Parts, name: str) -> NDArray:
    try:
        array = np.asarray(getattr(parts, name))
        if array.ndim == 1 and array.dtype.kind in "biuf":
            return array
    except ValueError:  # a list of lists of different lengths
        pass
    raise ValueError(f"the {name} of parts must be one list of numbers, the parts of all candidates one after another")


def wrong_sums(combined: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the places of `(n,)` values that differ from the combined costs of their parts.

    A candidate that failed need not have parts.
    """
    return np.flatnonzero(np.isfinite(values) & ~np.isclose(combined, values, rtol=_TOLERANCE, atol=0))


def check_sums(combined: NDArray[np.float64], values: NDArray[np.float64]) -> None:
    """Check that the combined costs of parts are the `(n,)` values; a candidate that failed need not have parts.

    Raises:
      ValueError: they are not.
    """
    if np.shape(combined) != values.shape:
        raise ValueError(f"combine returned shape {np.shape(combined)} for {len(values)} candidates")
    for i in wrong_sums(combined, values)[:1].tolist():
        total, value = float(combined[i]), float(values[i])
        raise ValueError(f"the parts of candidate {i} of the batch add up to {total!r}, but its value is {value!r}")
