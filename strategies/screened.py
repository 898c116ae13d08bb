"""Another strategy searches on a model of the costs, and only the best few candidates are evaluated."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Evaluations, Level, Strategy, Task, UserError, option
from bbo_suite.core.task import Screen
from bbo_suite.core.versions import PinnedFile
from bbo_suite.loop import drive
from bbo_suite.registry import Registry

_BATCH = 100
"""Candidates that the model predicts at a time."""


class ModelName(str):
    """The name of a model that the problem knows, or `path#digest` of a file (see `PinnedFile`)."""

    __slots__ = ()

    def __new__(cls, text: str) -> ModelName:
        """Return the text, with the digest of the content if it is the path of a file."""
        return super().__new__(cls, PinnedFile(text) if Path(text).is_file() else text)


@dataclass(frozen=True)
class ScreenedOptions:
    """Options of `screened:NAME`."""

    model: ModelName = option(ModelName("estimate"), "a model that the problem knows, or the file of one")  # noqa: RUF009
    keep: int = option(10, "candidates that are evaluated", low=1, high=1_000_000)
    candidates: int = option(5000, "candidates that are searched on the model", low=1, high=100_000_000)


class Screened(Strategy):
    """Searches on a model of the costs and evaluates the best candidates there, as XTAT does.

    `screened:annealing` is annealing on the model: it proposes thousands of candidates, whose costs the model predicts,
    which is no evaluation. The candidates with the lowest predictions are then evaluated, the best first, and the run
    ends. A candidate that the model expects to fail is not evaluated. The search has its default options and receives
    predictions only. XTAT evaluates 10 candidates of a whole graph, 5 of a kernel.

    The model is knowledge of the compiler, so this strategy counts as one that uses the structure.
    """

    Options: ClassVar[type] = ScreenedOptions
    options: ScreenedOptions
    level: ClassVar[Level] = Level.STRUCTURE
    has_variants = True
    search: ClassVar[str] = ""

    def __init__(self, task: Task, budget: int, rng: Generator, options: ScreenedOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._left: NDArray | None = None

    @classmethod
    def variants(cls) -> Collection[str]:
        """Return the ids of the strategies that can search on a model."""
        return sorted(name for name, load in Registry().strategies().items() if not load().has_variants)

    @classmethod
    @functools.cache
    def variant(cls, name: str) -> type[Strategy]:
        """Return the strategy in which another one searches."""
        return type("Screened", (cls,), {"search": name, "has_variants": False, "__doc__": cls.__doc__})

    @classmethod
    def members(cls, options: ScreenedOptions) -> list[str]:
        """Return the id of the strategy that searches."""
        return [cls.search]

    def ask(self, n: int) -> NDArray:
        """Return the next of the best candidates; no rows when all are evaluated."""
        if self._left is None:
            self._left = self._best()
        batch, self._left = self._left[:n], self._left[n:]
        return batch

    def _best(self) -> NDArray:
        """Search on the model and return the candidates with the lowest predictions, the best first."""
        if self.task.screen is None:
            raise UserError(f"{self.task.problem} offers no model of its costs; run {self.search} without a screen")
        rows, costs = self._searched(self.task.screen(self.options.model))
        if not len(rows):
            raise UserError(
                f"model {self.options.model} expects every candidate of {self.task.problem} to fail;"
                f" nothing is left to evaluate: run {self.search} without a screen"
            )
        return rows[np.argsort(costs, kind="stable")]

    def _searched(self, screen: Screen) -> tuple[NDArray, NDArray[np.float64]]:
        """Return the best candidates by the model and their predictions."""
        strategy = self._strategy()
        rows, costs = np.empty((0, len(self.task.space)), self.task.space.dtype), np.empty(0)
        for batch in drive(strategy, lambda configs, _: Evaluations.of(self._predicted(screen, configs)), _BATCH):
            rows, costs = self._lowest(np.concatenate([rows, batch.configs]), np.concatenate([costs, batch.values]))
        return rows, costs

    def _strategy(self) -> Strategy:
        found = (self.task.strategies or Registry()).strategy(self.search)
        return found(self.task, self.options.candidates, self.rng, found.Options())

    def _predicted(self, screen: Screen, configs: NDArray) -> NDArray[np.float64]:
        """Return `(n,)` predictions; inf for candidates that a known constraint forbids."""
        predicted, allowed = np.full(len(configs), np.inf), self.task.space.allowed(configs)
        if allowed.any():
            predicted[allowed] = screen(configs[allowed])
        if np.isnan(predicted).any():
            raise UserError(f"model {self.options.model} predicts no number for a candidate of {self.task.problem}")
        return predicted

    def _lowest(self, rows: NDArray, costs: NDArray[np.float64]) -> tuple[NDArray, NDArray[np.float64]]:
        """Return the different candidates with the lowest finite predictions; of equal ones, the first."""
        _, first = np.unique(rows, axis=0, return_index=True)
        first = np.sort(first[np.isfinite(costs[first])])
        best = first[np.argsort(costs[first], kind="stable")[: self.options.keep]]
        return rows[best], costs[best]
