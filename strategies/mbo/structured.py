"""The same strategy for a task that declares who interacts with whom, and what each decision is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Structure, Task

from .effects import Changes
from .features import Features
from .strategy import ModelBasedOptimization

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class StructuredFeatures(Features):
    """Features of the decision instead of its index, and products of changes over the declared graph.

    To those of `Features` come, means over a child's changes: what the task declares of each parameter (standardised
    logarithms) and the neighbours' values; and sums over its interacting pairs: their number and product of effects.
    """

    def __init__(self, task: Task, structure: Structure) -> None:
        from scipy.sparse import csr_array

        super().__init__(task)
        logs = np.sign(structure.features) * np.log1p(np.abs(structure.features))
        spread = logs.std(axis=0)
        self._declared = (logs - logs.mean(axis=0)) / np.where(spread > 0, spread, 1)
        ones = np.ones(len(structure.neighbours), np.float32)
        self._graph = csr_array((ones, structure.neighbours, structure.starts), shape=(len(logs), len(logs)))
        self._degrees = np.maximum(np.diff(structure.starts), 1)

    def _changes(self, base: NDArray, c: Changes) -> list[NDArray]:
        around = self._graph @ (base / np.maximum(self._sizes - 1, 1)) / self._degrees
        declared = np.stack([c.mean(column) for column in self._declared[c.columns].T], axis=1)
        pairs = [self._pairs(c, np.ones(len(c.rows))), self._pairs(c, self.effects.of(c))]
        return [*super()._changes(base, c), declared, c.mean(around[c.columns]), *pairs]

    def _pairs(self, c: Changes, entries: NDArray) -> NDArray[np.float64]:
        """Return the sum of the products of `(m,)` entries over each child's interacting pairs."""
        from scipy.sparse import csr_array

        starts = np.append(c.starts, len(c.rows))
        own: csr_array = csr_array((entries, c.columns, starts), shape=(len(c.counts), len(self._sizes)))
        return np.asarray((own @ self._graph).multiply(own).sum(axis=1)).ravel() / 2


class StructuredModelBasedOptimization(ModelBasedOptimization):
    """`mbo` that sees the declared structure: neighbours are those of the graph, and decisions have features."""

    uses_structure = True

    def _describe(self, task: Task) -> Features:
        return Features(task) if task.structure is None else StructuredFeatures(task, task.structure)
