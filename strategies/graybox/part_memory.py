"""The parts that were measured: their features and what they cost on average."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Description, Parts


class PartMemory:
    """The distinct parts seen so far, m in all.

    A part may be measured more than once and differ, because of noise. A part that failed stays a failure.

    Attributes:
      features: `(m, f)`.
      repeats: `(m,)` how often each part was measured.
    """

    def __init__(self, width: int) -> None:
        self._places: dict[int, int] = {}
        self._all, self._sums, self._repeats = np.empty((0, width)), np.empty(0), np.empty(0)
        self._squares = 0.0

    def __len__(self) -> int:
        return len(self._places)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """`(m,)`."""
        return np.fromiter(self._places, np.uint64, len(self._places))

    @property
    def features(self) -> NDArray[np.float64]:
        """`(m, f)`."""
        return self._all[: len(self)]

    @property
    def repeats(self) -> NDArray[np.float64]:
        """`(m,)` how often each part was measured."""
        return self._repeats[: len(self)]

    @property
    def logs(self) -> NDArray[np.float64]:
        """`(m,)` mean logarithms of costs; inf for a part that failed."""
        return self._sums[: len(self)] / self.repeats

    @property
    def noise(self) -> float:
        """The variance of the logarithm of a cost between measurements of one part; 0 if all were equal."""
        return self._squares / max(1.0, float((self.repeats - 1).sum()))

    def learn(self, parts: Parts, description: Description) -> None:
        """Add the parts of some candidates, given what the decomposition says of the same candidates."""
        keys, inverse = np.unique(parts.keys, return_inverse=True)
        described, row = np.unique(description.keys, return_index=True)
        rows = row[np.searchsorted(described, keys)]
        before = len(self)
        places = np.array([self._places.setdefault(key, len(self._places)) for key in keys.tolist()], np.int64)
        self._grow(len(self))
        fresh = places >= before
        self._all[places[fresh]] = description.features[rows[fresh]]
        with np.errstate(divide="ignore"):
            self._add(places, inverse, np.maximum(np.log(parts.costs), _LEAST))

    def _grow(self, m: int) -> None:
        """Make room for m parts, and for as many again."""
        more = 2 * m - len(self._sums) if m > len(self._sums) else 0
        if more:
            self._sums, self._repeats = (np.append(array, np.zeros(more)) for array in (self._sums, self._repeats))
            self._all = np.concatenate([self._all, np.zeros((more, self._all.shape[1]))])

    def _add(self, places: NDArray[np.int64], inverse: NDArray[np.int64], logs: NDArray[np.float64]) -> None:
        """Add `(k,)` logs, of which each belongs to one of the places, and the squares of what they differ."""
        k = len(places)
        repeats = np.bincount(inverse, minlength=k).astype(np.float64)
        sums, finite = np.bincount(inverse, logs, k), np.isfinite(logs)
        known = self._repeats[places] > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.where(finite, logs - (sums / repeats)[inverse], 0.0)
            gap = sums / repeats - self._sums[places] / self._repeats[places]
            between = gap**2 * repeats * self._repeats[places] / (repeats + self._repeats[places])
        self._squares += float((inside**2).sum()) + float(between[known & np.isfinite(gap)].sum())
        self._sums[places] += sums
        self._repeats[places] += repeats


_LEAST = -700.0
"""The logarithm of a cost of 0."""
