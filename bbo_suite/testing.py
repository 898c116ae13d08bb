"""Strategies run in memory, without a problem and without files: for tests of your own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from . import loop
from .core.problem import Evaluations
from .core.space import Space
from .core.strategy import Strategy
from .core.task import Compiler, Structure, Task
from .parts.parts import Parts, checked_parts

Cost = Callable[[NDArray], NDArray]
"""Takes `(n, d)` allowed candidates and returns their `(n,)` costs."""
Tell = Callable[[NDArray], Parts]
"""Takes `(n, d)` allowed candidates and returns their parts."""


def start(
    strategy: type[Strategy],
    space: Space,
    budget: int,
    seed: int = 0,
    structure: Structure | None = None,
    default: NDArray | None = None,
    compiler: Compiler | None = None,
    **options: object,
) -> Strategy:
    """Return a strategy at the start of a run on a space.

    Args:
      structure: what the task declares; the strategy sees of it what its level allows.
      default: `(d,)` the default candidate; zeros if not given.
      compiler: says what compiling a candidate tells; the strategy sees it if its level allows.
      options: fields of the strategy's `Options`.
    """
    row = np.zeros(len(space), space.dtype) if default is None else default
    task = Task("testing/task", space, row, "seconds", structure, compiler=compiler)
    return loop.start(strategy, task, budget, seed, strategy.Options(**options))


def play(
    strategy: Strategy, cost: Cost, batch: int = 100, parts: Tell | None = None
) -> Iterator[tuple[NDArray, NDArray[np.float64]]]:
    """Run a strategy on a cost function until its budget is spent; yield each batch and its costs.

    As in a stored run, forbidden candidates cost inf, the strategy does not learn from the last batch, and no rows end
    it.

    Args:
      parts: of the costs, for a strategy that uses parts; None for a problem that tells none.

    Raises:
      ValueError: the strategy proposes something that is not a batch of the space, or the parts are malformed.
    """
    for step in loop.drive(strategy, answering(strategy.task.space, cost, parts), batch):
        yield step.configs, step.values


def answering(space: Space, cost: Cost, parts: Tell | None = None) -> loop.Answer:
    """Return what evaluates candidates by a cost function, as `loop.drive` takes it; see `play`."""

    def answer(configs: NDArray, _: float) -> Evaluations:
        places, values = np.flatnonzero(space.allowed(configs)), np.full(len(configs), np.inf)
        told = None if parts is None else Parts.of_none(len(configs))
        if len(places):
            values[places] = cost(configs[places])
            if parts is not None:
                told = checked_parts(parts(configs[places]), len(places)).merged().spread(places, len(configs))
        return Evaluations(values, np.zeros(len(configs), np.int8), parts=told)

    return answer
