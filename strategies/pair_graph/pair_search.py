"""Measures the costs of nodes and edges, then searches on what is known of them."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Parts, Space, Structure
from bbo_suite.parts.table import PairDecomposition

from .cost_table import CostTable
from .exploration import Exploration
from .minimiser import Minimiser

_BATCH = 20
_EXPLORING = 0.5
"""The largest share of the budget for exploration."""
_STEPS = 3


class PairSearch:
    """The search for tasks whose parts depend on one or two parameters each.

    First come candidates with as many unknown parts as possible (`Exploration`): most of them fail where pairs are
    impossible, but they tell what pairs cost. When one would tell nothing new, or half of the budget is spent,
    candidates come from minimisation (`Minimiser`) on the costs that are known; where a cost is not, the median of
    those of its table stands for it until it is measured. When none can be better, the search learns what is still
    unknown, and ends when nothing is.

    Args:
      space: of the candidates.
      default: the first candidate.
      structure: with a `PairDecomposition`.
      budget: evaluations.
      rng: draws everything.
    """

    def __init__(self, space: Space, default: NDArray, structure: Structure, budget: int, rng: Generator) -> None:
        assert isinstance(structure.parts, PairDecomposition)
        self._space, self._rng, self._capacity = space, rng, structure.capacity
        self._table = CostTable(structure.parts, structure.capacity)
        self._exploration = Exploration(structure.parts, rng)
        self._budget, self._told = budget, 0
        self._best, self._cost = default.astype(np.int64), np.inf
        self._minimiser: Minimiser | None = None
        self._explores = True

    def ask(self, n: int) -> NDArray:
        """Return at most 20 candidates: the default, explorations, ends of a few steps; none if the best is proven."""
        if not self._told:
            return self._best[None].astype(self._space.dtype)
        rows: list[NDArray] = []
        if self._minimiser is not None and self._minimiser.is_proven and self._minimiser.cost >= self._cost:
            if not np.isnan(self._table.costs).any():
                return np.empty((0, len(self._best)), self._space.dtype)
            return np.array([self._exploration.draw()[0] for _ in range(min(n, _BATCH))], self._space.dtype)
        while self._explores and len(rows) < min(n, _BATCH):
            config, found = self._exploration.draw()
            self._explores = found > 0 and self._told + len(rows) < _EXPLORING * self._budget
            rows.append(config)
        return np.array(rows or self._minimised(min(n, _STEPS)), self._space.dtype)

    def _minimised(self, n: int) -> list[NDArray]:
        """Return the candidates of n steps, or the best of all steps so far if it was not measured."""
        if self._minimiser is None:
            self._minimiser = Minimiser(self._table.pairs(), self._capacity, self._best, self._rng)
        ends = [self._minimiser.step() for _ in range(n)]
        return [self._minimiser.best] if self._minimiser.cost < self._cost else ends

    def tell(self, configs: NDArray, values: NDArray[np.float64], parts: Parts) -> None:
        """Learn the costs of candidates and of their parts."""
        self._told += len(values)
        new = self._table.learn(parts)
        best = int(values.argmin())
        if values[best] < self._cost:
            self._best, self._cost = configs[best].astype(np.int64), float(values[best])
        if new and self._minimiser is not None:
            self._minimiser.learn(self._table.pairs(), self._best)

    def diagnostics(self) -> dict[str, float]:
        """Return the share of all costs of nodes and edges that is known."""
        return {"known": float(1 - np.isnan(self._table.costs).mean())}
