"""The moving state whose changes are proposed: annealing's rule of acceptance, and merging of what was accepted."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task

_ENOUGH = 200


class State:
    """A candidate that follows the accepted ones of its changes (Metropolis et al. 1953), and the scale of costs.

    Accepted changes of one batch that touch different parameters are merged into the next state, whose cost is measured
    with the next batch. Where a merge turns out worse than the rule allows, the next ones are halved.

    Args:
      task: gives the default, where it starts.
      budget: over which the temperature falls geometrically.
      heat: initial temperature, in median cost differences of a change.
      cooling: initial over final temperature.
      rng: draws what is accepted.

    Attributes:
      row: `(d,)` the state, or the merged one while its cost is not known.
      cost: of the last state whose cost is known.
      pending: is `row` to be measured?
      scale: the median cost difference so far; 0 while there is none.
    """

    def __init__(self, task: Task, budget: int, heat: float, cooling: float, rng: Generator) -> None:
        self.row: NDArray = task.default.astype(task.space.dtype)
        self.cost, self.pending, self.scale = np.inf, True, 0.0
        self._known = self.row
        self._space, self._budget, self._heat, self._cooling, self._rng = task.space, budget, heat, cooling, rng
        self._told, self._most = 0, 1 << 20
        self._differences = np.zeros(0)

    @property
    def temperature(self) -> float:
        """Cost differences of this size are accepted with a chance of 1 / e."""
        return self._heat * self.scale * self._cooling ** -(self._told / self._budget)

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> float:
        """Accept or refuse `(n, d)` changes of `row`, `row` itself first if it was pending, and return row's cost."""
        self._told += len(values)
        base, cost, refused = self.row, self.cost, False
        if self.pending:
            cost = float(values[0])
            refused = not self._accepts(np.array([cost]), self.cost)[0]
            self._most = max(1, self._most // 2) if refused else min(self._most * 2, 1 << 20)
            if not refused:
                self._known, self.cost = base, cost
            self.row, self.pending, configs, values = self._known, False, configs[1:], values[1:]
        self._measure(values, cost)
        self._follow(base, configs, values, cost, refused)
        return cost

    def back(self) -> None:
        """Give up a pending merge: its cost is known already, or nobody needs it."""
        self.row, self.pending = self._known, False

    def _follow(self, base: NDArray, configs: NDArray, values: NDArray, cost: float, refused: bool) -> None:
        """Move to what is accepted; from a refused base only the best change can be."""
        order = np.argsort(values, kind="stable")
        if refused:
            order = order[:1]
        order = order[self._accepts(values[order], self.cost if refused else cost)]
        if len(order) and np.isinf(values[order[0]]):
            order = self._rng.permutation(order)[:1]  # all failed so far: wander on
        if not len(order):
            return
        self._known, self.cost = configs[order[0]].copy(), float(values[order[0]])
        self.row = self._known
        if not refused:
            self._merge(base, configs[order[1 : self._most]])

    def _merge(self, base: NDArray, accepted: NDArray) -> None:
        merged, touched, taken = self._known.copy(), self._known != base, 0
        for other in accepted:
            changed = other != base
            if not (changed & touched).any():
                merged[changed] = other[changed]
                touched |= changed
                taken += 1
        if taken and bool(self._space.allowed(merged[None])[0]):
            self.row, self.pending = merged, True

    def _accepts(self, values: NDArray[np.float64], cost: float) -> NDArray[np.bool_]:
        """Apply the rule of Metropolis; a step among failures is one among equals."""
        with np.errstate(all="ignore"):
            worse = values - cost
            chance = np.exp(-worse / self.temperature) if self.temperature > 0 else np.zeros(len(values))
        return np.isnan(worse) | (worse <= 0) | (self._rng.random(len(values)) < np.nan_to_num(chance))

    def _measure(self, values: NDArray[np.float64], cost: float) -> None:
        if len(self._differences) < _ENOUGH and np.isfinite(cost):
            with np.errstate(over="ignore"):
                differences = np.abs(values - cost)
            found = differences[np.isfinite(differences) & (differences > 0)]
            self._differences = np.append(self._differences, found)
            self.scale = float(np.median(self._differences)) if len(self._differences) else 0.0
