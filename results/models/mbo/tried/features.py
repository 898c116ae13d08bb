"""What the models may know of a change besides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_strategies.mbo.effects import SparseChanges
from bbo_strategies.mbo.features import Features
from bbo_suite import Task

Floats = NDArray[np.float64]
_NEAR = 4
"""Parameters on each side of a changed one that count as its context."""


class SharedStatistics(Features):
    """Adds mean effects of the same new value in alike parameters, and of the neighbours in the list."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        sizes, self._group = np.unique(np.stack([task.space.sizes, task.space.kinds]), axis=1, return_inverse=True)
        self._first = np.cumsum(sizes[0]) - sizes[0]
        self._alike, self._own = np.zeros((2, int(sizes[0].sum()))), np.zeros((2, len(task.space)))

    def _places(self, columns: NDArray, values: NDArray) -> NDArray[np.int64]:
        return self._first[self._group[columns]] + values

    def _changes(self, base: NDArray, children: NDArray, c: SparseChanges) -> list[NDArray]:
        alike, own = (total / (tries + 1) for total, tries in (self._alike, self._own))
        moved = alike[self._places(c.columns, c.new)] - alike[self._places(c.columns, c.old)]
        right = (c.columns + 1) % len(base)
        beside = own[c.columns - 1] + own[right]
        return [*super()._changes(base, children, c), c.total(moved), c.mean(own[c.columns]), c.mean(beside)]

    def learn(self, base: NDArray, children: NDArray, differences: Floats) -> None:
        """Learn, and add to the means."""
        super().learn(base, children, differences)
        c = SparseChanges(base, children)
        each = (differences / np.maximum(c.counts, 1))[c.rows]
        for known, places in ((self._alike, self._places(c.columns, c.new)), (self._own, c.columns)):
            np.add.at(known[0], places, each)
            np.add.at(known[1], places, 1.0)


class Context(Features):
    """Adds the last effect of the same change, and whether the state has changed beside it since (linkage)."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._last, self._when = np.zeros((2, int(task.space.sizes.sum())))
        self._moved, self._base = np.zeros(len(task.space)), task.default.astype(np.int64)

    def _changes(self, base: NDArray, children: NDArray, c: SparseChanges) -> list[NDArray]:
        places, d = self.effects.places(c), len(base)
        near = (c.columns[:, None] + np.arange(-_NEAR, _NEAR + 1)) % d
        since = self._moved[near].max(axis=1) > self._when[places]
        last = self._last[places]
        known = [c.total(last), np.minimum.reduceat(last, c.starts), c.mean(since), c.total(last * since)]
        return [*super()._changes(base, children, c), *known]

    def learn(self, base: NDArray, children: NDArray, differences: Floats) -> None:
        """Learn, and note when the state and each change were seen."""
        super().learn(base, children, differences)
        self._moved[base != self._base] = self._now
        self._base = base.astype(np.int64)
        c = SparseChanges(base, children)
        places = self.effects.places(c)
        self._last[places] = (differences / np.maximum(c.counts, 1))[c.rows]
        self._when[places] = self._now
