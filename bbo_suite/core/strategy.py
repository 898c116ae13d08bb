"""The contract of a search strategy: `ask` returns candidates, `tell` reports their costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..parts.parts import Parts
from .level import Level
from .task import Task


@dataclass(frozen=True)
class NoOptions:
    """The options of a strategy that has none."""


@dataclass(frozen=True, eq=False)
class Told:
    """What a strategy is told of k evaluated candidates.

    Attributes:
      configs: `(k, d)` the candidates.
      values: `(k,)` their costs; inf for candidates that failed.
      parts: what each candidate consists of, with the cost of each part; None for a strategy of a lower level than
        `Level.PARTS`, and where the problem does not know.
      own: True for the batch that `ask` just returned; False for candidates of another strategy.
    """

    configs: NDArray
    values: NDArray[np.float64]
    parts: Parts | None = None
    own: bool = True


class Strategy(ABC):
    """Proposes candidates. With the same generator and the same costs, it must propose the same candidates.

    Args:
      task: the problem as a strategy sees it.
      budget: the number of evaluations in the run.
      rng: the only source of randomness.
      options: an instance of the class's `Options`, a frozen dataclass.

    Attributes:
      level: what the strategy may know: costs only, also what compiling tells, also what the problem declares about its
        parameters, or also the costs of parts.
      has_variants: True if the class represents several strategies, with ids `id:NAME`; see `variants` and `variant`.
    """

    Options: ClassVar[type] = NoOptions
    level: ClassVar[Level] = Level.COSTS
    has_variants: ClassVar[bool] = False
    pretrain: ClassVar[Callable[..., None] | None] = None
    """A class method, if the strategy can be trained on some problems and used on others; see `pretraining.pretrain`.

    It takes `(lessons, budget, rng, options, out, progress)` and writes what it learned to the file `out`.
    """

    def __init__(self, task: Task, budget: int, rng: Generator, options: Any) -> None:  # noqa: ANN401 - its own Options
        self.task, self.budget, self.rng, self.options = task, budget, rng, options

    def __repr__(self) -> str:
        """Return the class, the problem's id, the budget and the options."""
        return f"{type(self).__name__}({self.task.problem!r}, budget {self.budget:,}, {self.options!r})"

    @abstractmethod
    def ask(self, n: int) -> NDArray:
        """Return a `(k, d)` batch of indices with 1 <= k <= n, or no rows when no candidate is left to try."""

    def receive(self, told: Told) -> None:
        """Learn from evaluated candidates; the engine calls it after each batch but the last, as no proposal follows.

        By default it passes the costs on to `tell`, or to `observe` if another strategy proposed the candidates. A
        strategy that needs more overrides it.
        """
        (self.tell if told.own else self.observe)(told.configs, told.values)

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:  # noqa: B027 - not every strategy learns
        """Learn the `(k,)` costs of the last batch; inf for candidates that failed."""

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:  # noqa: B027 - not every strategy learns
        """Learn the `(k,)` costs of candidates that another strategy proposed for the same task.

        Called between a `tell` and the next `ask`, and only where strategies share a budget (`portfolio`).
        """

    @classmethod
    def members(cls, options: Any) -> Collection[str]:  # noqa: ANN401 - its own Options
        """Return the ids of the other strategies that it runs with these options; `task.strategies` finds them."""
        return ()

    @classmethod
    def variants(cls) -> Collection[str]:
        """Return the names of the strategies that a class with variants represents."""
        return ()

    @classmethod
    def variant(cls, name: str) -> type[Strategy]:
        """Return the strategy with one of the names in `variants`.

        Raises:
          UserError: a library that it needs is not installed.
        """
        raise NotImplementedError

    def diagnostics(self) -> dict[str, float]:
        """Return internal numbers by name (without a comma); they are stored with the run when they change.

        `score/NAME` is the cross-validated R^2 of a model; `hits/NAME`, which the figure `models` draws, the improving
        share of the changes that models chose, over that of random changes.
        """
        return {}
