"""The base class of searches that plan many candidates at once, and the systematic changes that they plan."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator as Search
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Moves, Space, Strategy, Task, UserError

from ..archive import Archive

Measured = tuple[NDArray, NDArray[np.float64]]
Climb = Search[NDArray, Measured, Measured]
"""Yields `(n, d)` candidates, is sent them with their `(n,)` costs, and returns one row with its cost."""


class Planned(Strategy):
    """Proposes the candidates of a plan in batches of any size, and learns all their costs at once.

    Attributes:
      archive: what was proposed before.
      moves: random changes of candidates.
    """

    def __init__(self, task: Task, budget: int, rng: Generator, options: Any) -> None:  # noqa: ANN401 - its own Options
        super().__init__(task, budget, rng, options)
        self.archive, self.moves = Archive(task.space, rng), Moves(task.space)
        self._left = self.new(np.concatenate([task.default[None].astype(task.space.dtype), self.begin()]))
        self._batches: list[tuple[NDArray, NDArray[np.float64]]] = []

    def ask(self, n: int) -> NDArray:
        """Return the next of the plan's candidates; no rows when a plan is empty."""
        if not len(self._left):
            self._left = self.plan()
        configs, self._left = self._left[:n], self._left[n:]
        return configs

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn the costs if they complete the plan."""
        self._batches.append((configs, values))
        if not len(self._left):
            rows, costs = (np.concatenate(arrays) for arrays in zip(*self._batches, strict=True))
            self._batches = []
            self.remember(rows, costs)
            self.learn(rows, costs)

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Exclude what another strategy has proposed, and remember what it costs."""
        self.archive.add(self.archive.digests(configs))
        self.remember(configs, values)

    def new(self, configs: NDArray, most: int | None = None) -> NDArray:
        """Return the first `most` of `(n, d)` candidates that were never proposed; they count as proposed now."""
        return configs[self.archive.claim(configs, len(configs) if most is None else most)]

    def random(self, n: int) -> NDArray:
        """Return up to `n` random candidates that were never proposed; none only if there are none."""
        drawn = self.new(self.task.space.sample(n, self.rng))
        return drawn if len(drawn) or not n else self.archive.others(n)

    def begin(self) -> NDArray:
        """Return what is measured with the default, before any cost is known."""
        return self.none

    @property
    def none(self) -> NDArray:
        """No candidates, `(0, d)`."""
        return np.empty((0, len(self.task.space)), self.task.space.dtype)

    @abstractmethod
    def plan(self) -> NDArray:
        """Return `(n, d)` new candidates, or none to end the search."""

    def remember(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn the `(n,)` costs of any candidates, its own or another strategy's; inf for those that failed."""

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn the `(n,)` costs of a plan's candidates, in its order, after they were remembered."""


class Stepwise(Planned):
    """A search that is written as one generator, which yields its plans and is sent their costs."""

    def __init__(self, task: Task, budget: int, rng: Generator, options: Any) -> None:  # noqa: ANN401 - its own Options
        super().__init__(task, budget, rng, options)
        self._search: Search[NDArray, Measured, None] | None = None
        self._measured: Measured = (self._left[:0], np.empty(0))

    def plan(self) -> NDArray:
        """Return what the search measures next; none when it ends."""
        try:
            if self._search is None:
                self._search = self.steps(*self._measured)
                return next(self._search)
            return self._search.send(self._measured)
        except StopIteration:
            return self._measured[0][:0]

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Keep the costs for the search."""
        self._measured = configs, values

    @abstractmethod
    def steps(self, rows: NDArray, costs: NDArray[np.float64]) -> Search[NDArray, Measured, None]:
        """Search, from the first plan and its costs on; what it yields is new and never empty."""


def best_of(state: Measured, measured: Measured) -> Measured:
    """Return the cheapest measured row with its cost if it is cheaper than the state, else the state."""
    rows, costs = measured
    place = int(np.argmin(costs))
    return (rows[place : place + 1], costs[place : place + 1]) if costs[place] < state[1][0] else state


def fitness(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return best cost / cost, `(n,)`; 0 for failures. Costs of 0 or less are first shifted above 0."""
    best = costs.min(initial=np.inf)
    if np.isinf(best):
        return np.zeros(len(costs))
    unit = abs(best) or 1.0
    return unit / (costs - best + unit)


class Steps:
    """Steps of the parameters that can change alone; those of permutations stay. Choices are stepped by index, too.

    Attributes:
      columns: `(m,)` the parameters that are stepped.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        movable = Moves(space).movable
        permuted = np.isin(space.groups, sorted(space.permutations)) & (space.groups >= 0)
        self.columns: NDArray[np.int64] = movable[~permuted[movable]]
        self._most = np.maximum(space.sizes - 1, 1)

    def scaled(self, configs: NDArray) -> NDArray[np.float32]:
        """Return `(n, d)` indices as numbers in [0, 1]."""
        return (configs / self._most).astype(np.float32)

    def taken(self, configs: NDArray, directions: NDArray) -> NDArray:
        """Return `(n, d)` candidates after `(n, m)` steps of -1, 0 or 1; a step beyond the ends is not taken.

        Of parameters that a constraint ties together, no step is taken if it forbids the result.
        """
        moved = configs.copy()
        stepped = configs[:, self.columns].astype(np.int64) + directions
        moved[:, self.columns] = np.clip(stepped, 0, self._space.sizes[self.columns] - 1)
        for component in self._space.components:
            rows = np.flatnonzero(~component.allows(moved))
            moved[np.ix_(rows, component.columns)] = configs[np.ix_(rows, component.columns)]
        return moved


def check_order(task: Task, owner: str) -> None:
    """Check that the task has ordered parameters that can change.

    Raises:
      UserError: it has none.
    """
    if not (task.space.kinds[Moves(task.space).movable] == Kind.SCALE).any():
        raise lacking(task, f"{owner} steps along ordered parameters", "parameters of kind scale")


def lacking(task: Task, need: str, declared: str) -> UserError:
    """Return the error that a task does not declare what a search needs.

    Args:
      need: the search, and what it does with what is declared.
      declared: what another task must declare, as `show` names it.
    """
    return UserError(
        f"{need}, and {task.problem} has none; use it on a problem that declares {declared},"
        " as `python -m bbo_suite show ID` tells of each"
    )
