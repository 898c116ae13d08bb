"""Which parameters interact, which are alike, and which are tied."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Task

from ..graphs import components, decided_nodes, pairs


class Neighbourhood:
    """What a task declares about its parameters, in the form that the search needs.

    Attributes:
      starts, neighbours: compressed sparse rows of the interaction graph; empty rows where nothing is declared.
      alike: `(d,)` a number for each parameter, equal for alike ones: those with equal sizes and declared features,
        such as in repeated layers. All differ if nothing is declared.
      plain: `(d,)` true if the parameter can be set freely: it is in no sequence and under no constraint.
      places: the nodes that parameters decide; see `decided_nodes`.
    """

    def __init__(self, task: Task) -> None:
        d, structure = len(task.space), task.structure
        self.starts, self.neighbours = np.zeros(d + 1, np.int64), np.empty(0, np.int32)
        self.plain = task.space.kinds != Kind.SLOT
        for component in task.space.components:
            self.plain[component.columns] = False
        self.alike, self.places = np.arange(d), list[NDArray[np.int64]]()
        if structure is not None:
            self.starts, self.neighbours = structure.starts, structure.neighbours
            self.alike = number_rows(np.column_stack([structure.features, task.space.sizes]))
            self.places = decided_nodes(structure)

    def of(self, column: int) -> NDArray[np.int32]:
        """Return the parameters that interact with one, without itself."""
        return self.neighbours[self.starts[column] : self.starts[column + 1]]

    def around(self, columns: NDArray) -> NDArray[np.int64]:
        """Return the parameters and all that interact with them, ascending."""
        lengths = self.starts[columns + 1] - self.starts[columns]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        reached = self.neighbours[np.repeat(self.starts[columns], lengths) + within]
        return np.unique(np.concatenate([columns, reached]))


def number_rows(features: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the same number for equal rows, compared byte by byte."""
    rows = np.ascontiguousarray(features)
    if not rows.size:
        return np.zeros(len(rows), np.int64)
    rows_as_bytes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    return np.unique(rows_as_bytes, return_inverse=True)[1].reshape(-1)


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
        first, second = pairs(near.starts, near.neighbours)
        alike = (sizes[first] == sizes[second]) & (default[first] == default[second]) & (sizes[first] > 1)
        self._count, self._first, self._second = len(sizes), first[alike], second[alike]
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

    def _labels(self, active: NDArray[np.bool_]) -> NDArray[np.int64]:
        return components(self._count, self._first[active], self._second[active])
