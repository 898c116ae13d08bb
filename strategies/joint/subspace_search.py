"""A search of one subspace by one strategy, around a candidate whose cost is known."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Strategy, Task

from .candidate import Candidate
from .subspace import Subspace


class SubspaceSearch:
    """Lets a strategy that knows nothing about passes search a small space.

    The strategy starts from the base. When it first proposes the base itself, it is told the known cost, and no
    evaluation is spent; further repeats are evaluated.

    Args:
      task: the whole task.
      subspace: the small space.
      base: gives all other decisions.
      strategy: proposes candidates, with its default options.
      budget: evaluations that it may spend.
      rng: the generator of the strategy.

    Attributes:
      base: as given.
      left: evaluations that it may still spend.
      covered: true if the strategy has nothing left to propose.
    """

    def __init__(
        self, task: Task, subspace: Subspace, base: Candidate, strategy: type[Strategy], budget: int, rng: Generator
    ) -> None:
        self._subspace, self.base, self.left, self.covered = subspace, base, budget, False
        self._space = subspace.space(task.space)
        start = np.minimum(base.row[subspace.targets[: len(subspace.sizes)]], subspace.sizes - 1)
        self._start = start.astype(self._space.dtype)
        structure = task.structure if self._space is task.space else None
        own_task = Task(task.problem, self._space, self._start, task.unit, structure, task.strategies)
        self._strategy = strategy(own_task, budget + 1, rng, strategy.Options())
        self._base_met = False
        self._configs = np.empty((0, len(subspace.sizes)), self._space.dtype)
        self._evaluated = np.empty(0, bool)

    def ask(self, n: int) -> NDArray:
        """Return at most `n` rows of the flat space, `(m, d)`; no rows when nothing is left."""
        self._propose(min(n, self.left))
        if len(self._configs) and not self._evaluated.any():
            self.tell(np.empty(0))
            self._propose(min(n, self.left))
        configs = self._configs[self._evaluated]
        self.left -= len(configs)
        self.covered = not len(configs)
        rows = np.repeat(self.base.row[None], len(configs), axis=0)
        one_each = len(self._subspace.targets) == configs.shape[1]
        rows[:, self._subspace.targets] = configs if one_each else configs[:, self._subspace.origins]
        return rows

    def _propose(self, n: int) -> None:
        self._configs = self._space.check(self._strategy.ask(n))
        is_base = (self._configs == self._start).all(axis=1)
        self._evaluated = np.ones(len(self._configs), bool)
        if is_base.any() and not self._base_met:
            self._evaluated[is_base.argmax()] = False
            self._base_met = True

    def tell(self, values: NDArray[np.float64]) -> None:
        """Tell the strategy the `(m,)` costs of what was just asked for, unless its budget is spent."""
        if self.left:
            costs = np.full(len(self._configs), self.base.cost)
            costs[self._evaluated] = values
            self._strategy.tell(self._configs, costs)
