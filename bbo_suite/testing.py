"""Strategies run in memory, without a problem and without files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .core.space import Space
from .core.strategy import Strategy, tell
from .core.task import Structure, Task
from .parts.parts import Parts, checked_parts

Cost = Callable[[NDArray], NDArray]
"""Takes `(n, d)` candidates and returns their `(n,)` costs."""
Tell = Callable[[NDArray], Parts]
"""Takes `(n, d)` allowed candidates and returns their parts."""


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
      structure: what the task declares; the strategy sees of it what it uses.
      default: `(d,)` the default candidate; zeros if not given.
      options: fields of the strategy's `Options`.
    """
    row = np.zeros(len(space), space.dtype) if default is None else default
    task = Task("testing/task", space, row, "seconds", _seen(strategy, structure))
    return strategy(task, budget, np.random.default_rng(seed), strategy.Options(**options))


def _seen(strategy: type[Strategy], structure: Structure | None) -> Structure | None:
    if structure is None or strategy.uses_parts:
        return structure
    return replace(structure, parts=None) if strategy.uses_structure else None


def play(
    strategy: Strategy, cost: Cost, batch: int = 100, parts: Tell | None = None
) -> Iterator[tuple[NDArray, NDArray[np.float64]]]:
    """Run a strategy on a cost function until its budget is spent; yield each batch and its costs before `tell`.

    As in a stored run, forbidden candidates cost inf, `tell` is not called for the last batch, and no rows end it.

    Args:
      parts: of the costs, for a strategy that uses parts; None for a problem that tells none.

    Raises:
      ValueError: the strategy proposes something that is not a batch of the space, or the parts are malformed.
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
            tell(strategy, configs, values, _told(space, configs, parts) if strategy.uses_parts else None)


def _told(space: Space, configs: NDArray, parts: Tell | None) -> Parts | None:
    """Return the parts as the engine tells them: in the order of keys, and none of forbidden candidates."""
    places = np.flatnonzero(space.allowed(configs))
    if parts is None or not len(places):
        return None if parts is None else Parts.of_none(len(configs))
    return checked_parts(parts(configs[places]), len(places)).merged().spread(places, len(configs))
