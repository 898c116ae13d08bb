"""The contract of a search strategy: ask for candidates, tell what they cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .task import Task


@dataclass(frozen=True)
class NoOptions:
    """The options of a strategy that has none."""


class Strategy(ABC):
    """Proposes candidates; deterministic given its generator and what it was told.

    Args:
      task: all that may be known of the problem.
      budget: how many evaluations the run has in all.
      rng: the only source of randomness.
      options: an instance of the class's `Options`, a frozen dataclass.

    Attributes:
      uses_structure: does it look at what the problem declares about itself?
      has_variants: does the class only stand for others, `id:NAME` each, which `variants` and `variant` give?
    """

    Options: ClassVar[type] = NoOptions
    uses_structure: ClassVar[bool] = False
    has_variants: ClassVar[bool] = False
    pretrain: ClassVar[Callable[..., None] | None] = None
    """A class method, if the strategy can learn on some problems for others; see `pretraining.pretrain`.

    It takes `(lessons, budget, rng, options, out, progress)` and writes what it learned to the path `out`.
    """

    def __init__(self, task: Task, budget: int, rng: Generator, options: Any) -> None:  # noqa: ANN401 - its own Options
        self.task, self.budget, self.rng, self.options = task, budget, rng, options

    @abstractmethod
    def ask(self, n: int) -> NDArray:
        """Return a `(k, d)` batch of indices with 1 <= k <= n, or no row at all when nothing is left to try."""

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:  # noqa: B027 - some need not learn
        """Learn the `(k,)` costs of the batch that was just asked for, inf for what failed.

        The last batch of a run is not told: nothing could come of it.
        """

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:  # noqa: B027 - some need not learn
        """Learn the `(k,)` costs of candidates that somebody else proposed for the same task.

        Called between a `tell` and the next `ask`, and only where strategies share a budget (`portfolio`).
        """

    @classmethod
    def members(cls, options: Any) -> Collection[str]:  # noqa: ANN401 - its own Options
        """Return the ids of the other strategies that it runs with these options, found by `task.strategies`."""
        return ()

    @classmethod
    def variants(cls) -> Collection[str]:
        """Return the names of the strategies that a class with variants stands for."""
        return ()

    @classmethod
    def variant(cls, name: str) -> type[Strategy]:
        """Return the strategy of a name among `variants`.

        Raises:
          UserError: what it needs is not installed.
        """
        raise NotImplementedError

    def diagnostics(self) -> dict[str, float]:
        """Return numbers about its inside by name (without a comma), kept in the run's folder when they change.

        `score/NAME` is the cross-validated R^2 of a model.
        """
        return {}
