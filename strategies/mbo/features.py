"""The features of a change: numbers that describe its kind, and not which parameter it touches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Kind, Task

from .effects import Effects, SparseChanges

_NARROW = 128
_RATE = 0.2


class Features:
    """Describes children of a state by their changes, so that what is learned from one parameter applies to all.

    A regression with one feature per parameter knows nothing about an untried parameter. With these features it
    predicts any change after about fifty evaluations, in the same time for ten parameters and for ten thousand. In
    narrow spaces the candidate itself is added: values of choices and slots one-hot, scales as numbers in [0, 1]. For
    sequences of few values their counts are added.
    """

    def __init__(self, task: Task) -> None:
        self._space, self._default = task.space, task.default
        self._sizes = task.space.sizes.astype(np.float32)
        d = len(self._sizes)
        self.effects = Effects(task.space)
        self._now = 0
        self._tried = np.zeros(d, np.int32)
        self._success = np.zeros(d, np.float32)
        scales = task.space.kinds == Kind.SCALE
        widths = np.where(scales, 1, task.space.sizes)
        narrow = widths.sum() <= _NARROW
        self._flags = np.flatnonzero(~scales & narrow)
        self._numbers = np.flatnonzero(scales & narrow)
        spans = [(a, b) for a, b in task.space.slots.values() if task.space.sizes[a] <= _NARROW]
        self._sequences = spans if len(spans) <= 2 else []

    def of(self, base: NDArray, children: NDArray) -> NDArray[np.float32]:
        """Return the `(n, width)` features of `(n, d)` children of a `(d,)` base, all different from it."""
        changes = SparseChanges(base, children)
        columns = [*self._changes(base, children, changes), *self._candidates(children)]
        return np.column_stack(columns).astype(np.float32)

    def _changes(self, base: NDArray, children: NDArray, c: SparseChanges) -> list[NDArray]:
        columns, mean, d = c.columns, c.mean, len(base)
        spans = columns[c.starts + c.counts - 1] - columns[c.starts] + 1
        effect, tries = self.effects.of(c), self.effects.tries[self.effects.places(c)]
        right = (columns + 1) % d  # of the parameter's neighbours; the left one is columns - 1
        return [
            np.log1p(c.counts),
            np.log(spans),
            c.counts / spans,
            mean(c.new == c.new[c.starts][c.rows]),
            _rougher(base, children, c),
            c.total((c.new == self._default[columns]) * 1.0 - (c.old == self._default[columns])),
            mean(columns) / d,
            mean(np.log(self._sizes[columns])),
            mean((c.new - c.old) / np.maximum(self._sizes[columns] - 1, 1)),
            mean(c.new == self._default[columns]),
            mean((base[columns - 1] == c.new) * 0.5 + (base[right] == c.new) * 0.5),
            c.total(effect),
            np.maximum.reduceat(effect, c.starts),
            np.minimum.reduceat(effect, c.starts),
            mean(tries == 0),
            mean(np.log1p(tries)),
            mean(np.log1p(self._now - self._tried[columns])),
            mean(self._success[columns]),
            mean(self._success[columns - 1] + self._success[right]),
        ]

    def _candidates(self, children: NDArray) -> list[NDArray]:
        blocks = [children[:, [i]] == np.arange(self._space.sizes[i]) for i in self._flags]
        numbers = [children[:, self._numbers] / np.maximum(self._sizes[self._numbers] - 1, 1)]
        counts = [_occurrences(children[:, a:b], int(self._space.sizes[a])) for a, b in self._sequences]
        return blocks + numbers + counts

    def learn(self, base: NDArray, children: NDArray, differences: NDArray[np.float64]) -> None:
        """Learn how much more `(n, d)` children cost than their base: `(n,)`, in median differences."""
        c = SparseChanges(base, children)
        self.effects.learn(c, differences)
        self._now += len(children)
        self._tried[c.columns] = self._now
        better = (differences < 0).astype(np.float32)[c.rows]
        self._success[c.columns] += _RATE * (better - self._success[c.columns])


def _rougher(base: NDArray, children: NDArray, c: SparseChanges) -> NDArray[np.float64]:
    """Return by how many more neighbouring parameters differ in each child than in the base, `(n,)`."""
    right = (c.columns + 1) % len(base)
    same = children[c.rows, right] == base[right]  # a pair that changed on both sides is counted once, at its right
    before = np.not_equal(base[c.columns - 1], c.old) + same * np.not_equal(base[right], c.old).astype(int)
    after = np.not_equal(children[c.rows, c.columns - 1], c.new) + same * np.not_equal(base[right], c.new).astype(int)
    return c.total(after - before)


def _occurrences(slots: NDArray, values: int) -> NDArray[np.int64]:
    """Return the `(n, values)` counts of the values in each row of `(n, length)` slots."""
    n = len(slots)
    return np.bincount((np.arange(n)[:, None] * values + slots).ravel(), minlength=n * values).reshape(n, values)
