"""Strategies run in memory, without a problem and without files."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from .core.space import Space
from .core.strategy import Strategy
from .core.task import Structure, Task

Cost = Callable[[NDArray], NDArray]
"""Takes `(n, d)` candidates and returns their `(n,)` costs."""


def start(
    strategy: type[Strategy],
    space: Space,
    budget: int,
    seed: int = 0,
    structure: Structure | None = None,
    default: NDArray | None = None,
    **options: object,
) -> Strategy:
    """Return a strategy at the start of a run on a space.

    Args:
      structure: what the task declares; dropped for a strategy that does not use it.
      default: `(d,)` the default candidate; zeros if not given.
      options: fields of the strategy's `Options`.
    """
    row = np.zeros(len(space), space.dtype) if default is None else default
    task = Task("testing/task", space, row, "seconds", structure if strategy.uses_structure else None)
    return strategy(task, budget, np.random.default_rng(seed), strategy.Options(**options))


def play(strategy: Strategy, cost: Cost, batch: int = 100) -> Iterator[tuple[NDArray, NDArray[np.float64]]]:
    """Run a strategy on a cost function until its budget is spent; yield each batch and its costs before `tell`.

    As in a stored run, forbidden candidates cost inf, `tell` is not called for the last batch, and no rows end it.

    Raises:
      ValueError: the strategy proposes something that is not a batch of the space.
    """
    left, space = strategy.budget, strategy.task.space
    while left:
        configs = space.check(strategy.ask(wanted := min(batch, left)))
        if len(configs) > wanted:
            raise ValueError(f"it returned {len(configs)} candidates when asked for {wanted}")
        if not len(configs):
            return
        left -= len(configs)
        values = np.where(space.allowed(configs), cost(configs), np.inf)
        yield configs, values
        if left:
            strategy.tell(configs, values)
