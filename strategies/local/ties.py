"""Which parameters are tied: a candidate in which they differ fails."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bbo_suite import Task

from .neighbourhood import Neighbourhood

_VALUES = 2
"""Values with which a tie is tried: one may fail for another reason, such as a capacity."""
_MOST = 1000
"""Ties that are looked at; each takes as long as a walk through the graph."""


class Ties:
    """Pairs of parameters that may not differ.

    Parameters that interact, and have the same number of values and the same default, are presumed tied: what follows
    another mostly has the same choices in the same order. A trial sets all that is tied to one of them to another
    value. If it works, neither this pair nor any of alike parameters is tied. A pair that is also connected through
    other ties stays.

    Args:
      task: with a structure; the default must work.
      most: ties to try.
      rng: draws them.

    Attributes:
      trials: `(2 k, d)` candidates that try k ties with two values each.
    """

    def __init__(self, task: Task, most: int, rng: Generator) -> None:
        near, sizes, default = Neighbourhood(task), task.space.sizes, task.default.astype(np.int64)
        first, second = np.repeat(np.arange(len(sizes)), np.diff(near.starts)), near.neighbours.astype(np.int64)
        alike = (sizes[first] == sizes[second]) & (default[first] == default[second]) & (sizes[first] > 1)
        presumed = np.flatnonzero((first < second) & alike)
        self._count, self._first, self._second = len(sizes), first[presumed], second[presumed]
        kinds = np.sort(np.column_stack([near.alike[self._first], near.alike[self._second]]), axis=1)
        self._kinds = np.unique(kinds, axis=0, return_inverse=True)[1].reshape(-1)
        tried = list(self._tried(most, rng))
        self._tried_kinds = np.array([self._kinds[tie] for tie, _ in tried], np.int64)
        self.trials = np.repeat(default[None], _VALUES * len(tried), axis=0)
        for k, (tie, side) in enumerate(tried):
            others = rng.permutation(np.delete(np.arange(sizes[self._first[tie]]), default[self._first[tie]]))
            for i in range(_VALUES):
                self.trials[_VALUES * k + i, side] = others[i % len(others)]

    def _tried(self, most: int, rng: Generator) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Yield a tie of each kind, and the parameters on the smaller side of it."""
        done, every = set[int](), np.ones(len(self._first), bool)
        for tie in rng.permutation(len(self._first))[:_MOST].tolist():
            if len(done) >= most or self._kinds[tie] in done:
                continue
            every[tie] = False
            labels, every[tie] = self._labels(every), True
            ends = labels[[self._first[tie], self._second[tie]]]
            if ends[0] != ends[1]:
                done.add(int(self._kinds[tie]))
                sides = labels == ends[0], labels == ends[1]
                yield tie, min(sides, key=np.count_nonzero)

    def groups(self, costs: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return `(d,)` the number of the group of each parameter, given the costs of the trials."""
        works = np.isfinite(costs.reshape(-1, _VALUES)).any(axis=1)
        return self._labels(~np.isin(self._kinds, self._tried_kinds[works]))

    def _labels(self, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
        d, ends = self._count, (self._first[kept], self._second[kept])
        return connected_components(coo_array((np.ones(len(ends[0])), ends), shape=(d, d)), directed=False)[1].astype(
            np.int64
        )
