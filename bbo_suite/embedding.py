"""A strategy in somebody's own loop: `bbo_suite.optimizer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .core.arguments import typed
from .core.space import Space
from .core.strategy import Strategy, Told
from .core.task import Structure, Task
from .errors import UserError, error_boundary
from .loop import checked, start
from .plugins import check_class
from .registry import Registry

Candidate = Mapping[str, Any] | NDArray
"""The values by the names of the parameters, or a `(d,)` row of indices."""


@typed
def optimizer(
    strategy: str | type[Strategy],
    space: Space,
    budget: int,
    *,
    seed: int = 0,
    default: Candidate | None = None,
    structure: Structure | None = None,
    options: Mapping[str, Any] | None = None,
    plugins: Sequence[str | Path] = (),
) -> Optimizer:
    """Return a strategy for a loop of your own: you ask for candidates, measure them, and tell their costs.

    With equal arguments and equal costs it proposes the same candidates.

    Args:
      strategy: an id, or a class; `plugins` are files that define further ones.
      space: the candidates, see `bbo_suite.product`.
      budget: the evaluations that you can afford; strategies plan with it.
      default: what you use today, which most strategies try first; the first value of each parameter if not given.
      structure: what is known of the parameters; a strategy sees it if its level allows it.
      options: of the strategy, by name.

    Raises:
      UserError: there is no such strategy or option, or the strategy cannot search this space.
    """
    if budget < 1:
        raise UserError(f"budget must be 1 or more, not {budget}")
    if seed < 0:
        raise UserError(f"seed must be 0 or more, not {seed}")
    if not isinstance(space, Space):
        raise UserError(
            f"the space must be a bbo_suite.Space, such as bbo_suite.product returns, not {repr(space)[:60]}"
        )
    made = Registry(tuple(map(Path, plugins))).strategy(strategy) if isinstance(strategy, str) else strategy
    if not (isinstance(made, type) and issubclass(made, Strategy)):
        raise UserError(f"{repr(made)[:60]} is not a strategy; give an id or a subclass of bbo_suite.Strategy")
    check_class(made)
    owner = f"strategy {strategy if isinstance(strategy, str) else made.__name__}"
    row = _first(space, seed) if default is None else _rows(space, [default])[0]
    task = Task("your own loop", space, row, "your unit", structure)
    return Optimizer(start(made, task, budget, seed, dict(options or {}), owner), owner)


class Optimizer:
    """A strategy that is asked for candidates and told their costs, in turns.

    As in a stored run, a candidate that a known constraint forbids uses up an evaluation. You never see it.

    Attributes:
      done: True once the budget is spent, or the strategy has nothing left to try.
      best_cost: the lowest cost so far; inf before the first.
    """

    def __init__(self, strategy: Strategy, owner: str) -> None:
        self.done, self.best_cost = False, np.inf
        self._strategy, self._space, self._left = strategy, strategy.task.space, strategy.budget
        self._owner = owner
        self._best: NDArray | None = None
        self._proposed, self._allowed = np.empty((0, len(self._space)), self._space.dtype), np.empty(0, bool)

    @property
    def best(self) -> dict[str, Any] | None:
        """The candidate with the lowest cost so far, as values by the names of parameters; None before the first."""
        return None if self._best is None else self._space.describe(self._best)

    def ask(self, n: int = 1) -> list[dict[str, Any]]:
        """Return at most n candidates, each as values by the names of parameters; none when it is done."""
        return [self._space.describe(row) for row in self.ask_rows(n)]

    def ask_rows(self, n: int = 1) -> NDArray:
        """Return at most n candidates as `(k, d)` rows of indices; no rows when it is done.

        Raises:
          UserError: the costs of the candidates before were not told, or the strategy failed.
        """
        if len(self._proposed):
            raise UserError("tell the costs of the candidates that you have before you ask for more")
        if not isinstance(n, int | np.integer) or n < 1:
            raise UserError(f"ask for 1 candidate or more, not {n}")
        while not self.done:
            with error_boundary(self._owner, "ask"):
                proposed = self._strategy.ask(min(n, self._left))
            self._proposed = checked(self._space, proposed, min(n, self._left), self._owner).copy()
            self._allowed = self._space.allowed(self._proposed)
            self.done = not len(self._proposed)
            if self._allowed.any():
                break
            if not self.done:
                self._learn(np.full(len(self._proposed), np.inf))
        return self._proposed[self._allowed]

    def tell(self, candidates: Sequence[Candidate] | NDArray, costs: ArrayLike) -> None:
        """Tell the costs of all candidates that you asked for, in their order; inf for one that failed.

        Raises:
          UserError: they are other candidates, or a cost is missing or no number.
        """
        rows = _rows(self._space, candidates)
        if not len(rows) and not len(self._proposed):  # nothing was left to try
            return
        if not np.array_equal(rows, self._proposed[self._allowed]):
            raise UserError("tell the costs of exactly the candidates that `ask` returned, in their order")
        try:
            values = np.asarray(costs, np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (len(rows),) or not (values > -np.inf).all():
            raise UserError(f"give one cost for each of the {len(rows)} candidates; one that failed costs inf")
        if values.min() < self.best_cost:
            self._best, self.best_cost = rows[values.argmin()], float(values.min())
        every = np.full(len(self._proposed), np.inf)
        every[self._allowed] = values
        self._learn(every)

    def _learn(self, values: NDArray[np.float64]) -> None:
        told, self._proposed = Told(self._proposed, values), self._proposed[:0]
        self._left -= len(values)
        self.done = self._left < 1
        if not self.done:
            with error_boundary(self._owner, "tell"):
                self._strategy.receive(told)


def _first(space: Space, seed: int) -> NDArray:
    """Return the row of first values, permutations in their order; a random row if that one is forbidden."""
    row = np.zeros((1, len(space)), space.dtype)
    for start_, stop in space.free_permutations:
        row[0, start_:stop] = np.arange(stop - start_)
    return (row if space.allowed(row)[0] else space.sample(1, np.random.default_rng(seed)))[0]


def _rows(space: Space, candidates: Sequence[Candidate] | NDArray) -> NDArray:
    """Return candidates as rows of the space.

    Raises:
      UserError: one is not a candidate of the space.
    """
    try:
        rows = [space.row(each) if isinstance(each, Mapping) else np.asarray(each) for each in candidates]
        return space.check(np.stack(rows)) if rows else np.empty((0, len(space)), space.dtype)
    except ValueError as error:
        raise UserError(f"this is no candidate of the space: {error}") from None
