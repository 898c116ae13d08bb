"""Best-first search: the cheapest candidate is expanded next, and children that cost too much are dropped."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task, option

from .planned import Planned
from .single_changes import SingleChanges

_PLAN = 100


@dataclass(frozen=True)
class TasoOptions:
    """Options of `published:taso`."""

    alpha: float = option(1.0, "a child is kept if it costs less than this times the best (its examples)", 0, 100)
    queue: int = option(1000, "largest number of candidates that wait (ours, for memory)", low=1, high=1_000_000)


class Taso(Planned):
    """Best-first search with pruning by alpha, in the style of TASO (Jia et al. 2019).

    Reproduced, from its public code: a queue of candidates by cost; the cheapest is taken, every change at every place
    is tried, and children that cost less than alpha times the best one taken so far wait in turn. When the queue is
    empty, the search ends. The examples in its repository use an alpha of 1.

    Different here: a change is another value of one parameter, or two slots of a permutation exchanged; changes are
    tried in a random order; every child is measured and counts.

    Not reproduced: its substitutions of graphs, their generation and verification, and its sum of measured operators.
    """

    Options: ClassVar[type] = TasoOptions
    options: TasoOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: TasoOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._changes = SingleChanges(task.space)
        self._queue: list[tuple[float, int, NDArray]] = []
        self._best, self._kept = np.inf, 0
        self._row: NDArray | None = None
        self._order, self._tried = np.empty(0, np.int64), 0

    def plan(self) -> NDArray:
        """Return the next children of the candidate that is expanded."""
        while True:
            while self._row is not None and self._tried < len(self._order):
                places = self._order[self._tried : self._tried + _PLAN]
                self._tried += len(places)
                children = self.new(self._changes.rows(self._row, places))
                if len(children):
                    return children
            if not self._queue:
                return self.task.default[None][:0].astype(self.task.space.dtype)
            cost, _, self._row = heapq.heappop(self._queue)
            self._best = min(self._best, cost)
            self._order, self._tried = self.rng.permutation(len(self._changes)), 0

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let children wait that cost less than alpha times the best."""
        limit = self._best + (self.options.alpha - 1) * abs(self._best) if np.isfinite(self._best) else np.inf
        for place in np.flatnonzero((values < limit) | (self._kept == 0)):
            self._kept += 1
            heapq.heappush(self._queue, (float(values[place]), self._kept, configs[place].copy()))
        if len(self._queue) > self.options.queue:
            self._queue = heapq.nsmallest(self.options.queue, self._queue)

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let another strategy's candidates wait, by the same rule."""
        super().observe(configs, values)
        self.learn(configs, values)
