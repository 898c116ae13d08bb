"""Variable neighbourhoods, a nearest-neighbour surrogate and annealing: HybridVNDX of Kernel Tuner."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator as Search
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task, option

from ..changes import SingleChanges
from .planned import Measured, Stepwise

_FAILED = float(np.finfo(np.float64).max)
_PENALTY = 1e3
_REWARD, _LOSS = 1.1, 0.9
_METHODS, _HAMMING = 3, 2
_DRAWS, _IDLE = 64, 300


@dataclass(frozen=True)
class HybridVndxOptions:
    """Options of `published:hybrid-vndx`."""

    nearest: int = option(5, "measured candidates whose mean cost predicts that of another (its code)", low=1)
    pool: int = option(8, "candidates of which the one with the least prediction is measured (its code)", low=2)
    restart: int = option(100, "refused candidates after which it starts again at random (its code)", low=1)
    tabu: int = option(300, "accepted candidates that are avoided (its code)", low=1)
    elite: int = option(5, "candidates that are kept for crossover (its code)", low=2)
    temperature: float = option(1.0, "initial temperature, in milliseconds for times (its code)", low=0)
    cooling: float = option(0.995, "factor of the temperature for each candidate (its code)", low=0, high=1)
    repaired: bool = option(False, "keep the best elites, and let temperatures be shares of the current cost (ours)")


class HybridVndx(Stepwise):
    """Variable neighbourhoods with a surrogate, in the style of HybridVNDX (Willemsen et al. 2026, Kernel Tuner 1.4).

    A language model wrote it. Reproduced, from `gen_hybrid_vndx.py` of Kernel Tuner: one candidate at a time, of eight
    the one with the least mean cost of its five nearest neighbours; half of the eight are neighbours of the current
    one, in one of three neighbourhoods that are drawn by weights which success raises, one is a crossover of two
    elites, the others are random; annealing decides whether it becomes the current one; a tabu list; a new random
    start after 100 refusals. Also reproduced: the heap of elites drops its best, so that it keeps the five worst, and
    the temperature is an absolute cost. `repaired=true` repairs both.

    Different here: the default comes first, and then a random candidate, from which it starts; what was measured is not
    measured again, its cost is remembered, and after 300 such candidates in a row the search ends; of a neighbourhood
    64 candidates are drawn, and those that are allowed are used; the two adjacent neighbourhoods are one, in which each
    parameter moves by one index at most.

    Not reproduced: its end after 5,000 steps.

    Attributes:
      elite: the candidates that are crossed with the current one, with their costs, which come first.
    """

    Options: ClassVar[type] = HybridVndxOptions
    options: HybridVndxOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: HybridVndxOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._changes = SingleChanges(task.space)
        self._unit = 1000.0 if task.unit == "seconds" else 1.0  # its temperature and its penalty are in milliseconds
        self._known: dict[str, float] = {}
        self._rows, self._costs = np.empty((0, len(task.space)), task.space.dtype), np.empty(0)
        self.elite: list[tuple[float, NDArray]] = []
        self._idle = 0

    def begin(self) -> NDArray:
        """Return the start."""
        return self.task.space.sample(1, self.rng)

    def steps(self, rows: NDArray, costs: NDArray[np.float64]) -> Search[NDArray, Measured, None]:
        """Measure one candidate after another."""
        self._remember(rows, costs)
        current, weights = (rows[-1:], float(self._costs[-1])), np.ones(_METHODS)
        self.keep(*current)
        tabu, refused, temperature = deque([self._name(rows[-1:])], self.options.tabu), 0, self.options.temperature
        while self._idle < _IDLE:
            method = int(self.rng.choice(_METHODS, p=weights / weights.sum()))
            row = self._pick(self._pool(current[0], method), tabu)
            cost = yield from self._cost(row)
            self.keep(row, cost)
            accepted = self._accepts(cost, current[1], temperature)
            weights[method] *= _REWARD if accepted else _LOSS
            temperature *= self.options.cooling
            refused = 0 if accepted else refused + 1
            if accepted:
                current = row, cost
                tabu.append(self._name(row))
            elif refused >= self.options.restart:
                start = self.task.space.sample(1, self.rng)
                current, refused, temperature = (start, (yield from self._cost(start))), 0, self.options.temperature
                tabu.clear()
                tabu.append(self._name(start))

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Remember another strategy's candidates."""
        super().observe(configs, values)
        self._remember(configs, values)

    def _name(self, row: NDArray) -> str:
        return self.archive.digests(row)[0]

    def _remember(self, rows: NDArray, costs: NDArray[np.float64]) -> None:
        scaled = np.where(np.isfinite(costs), costs * self._unit, _FAILED)
        self._rows, self._costs = np.concatenate([self._rows, rows]), np.concatenate([self._costs, scaled])
        self._known.update(zip(self.archive.digests(rows), scaled.tolist(), strict=True))

    def _cost(self, row: NDArray) -> Search[NDArray, Measured, float]:
        """Measure a `(1, d)` candidate, or remember its cost."""
        name = self._name(row)
        self._idle = self._idle + 1 if name in self._known else 0
        if name not in self._known:
            self.archive.add([name])
            self._remember(*(yield row))
        else:
            self._rows, self._costs = np.concatenate([self._rows, row]), np.append(self._costs, self._known[name])
        return self._known[name]

    def keep(self, row: NDArray, cost: float) -> None:
        """Take a candidate among the elites; as published, the best of more than five is dropped."""
        self.elite = sorted([*self.elite, (cost, row)], key=lambda one: one[0])
        if len(self.elite) > self.options.elite:
            del self.elite[-1 if self.options.repaired else 0]

    def _accepts(self, cost: float, current: float, temperature: float) -> bool:
        unit = (abs(current) or 1.0) if self.options.repaired else 1.0
        return cost < current or self.rng.random() < np.exp(-(cost - current) / unit / max(temperature, 1e-8))

    def _pool(self, row: NDArray, method: int) -> NDArray:
        """Return the different candidates among which the surrogate chooses."""
        near = self._neighbours(row, method)[: self.options.pool // 2]
        if len(self.elite) > 1:
            one, other = self.rng.choice(len(self.elite), 2, replace=False)
            child = np.where(self.rng.random(row.shape) < 0.5, self.elite[one][1], self.elite[other][1])
            near = np.concatenate([near, child[self.task.space.allowed(child)]])
        pool = np.concatenate([near, self.task.space.sample(self.options.pool - len(near), self.rng)])
        _, first = np.unique(pool, axis=0, return_index=True)
        return pool[np.sort(first)]

    def _neighbours(self, row: NDArray, method: int) -> NDArray:
        if method == _HAMMING:
            return self._changes.rows(row[0], self.rng.permutation(len(self._changes))[:_DRAWS])
        low, high = np.maximum(row - 1, 0), np.minimum(row + 1, self.task.space.sizes - 1)
        drawn = self.rng.integers(low, high + 1, (_DRAWS, row.shape[1])).astype(row.dtype)
        return drawn[self.task.space.allowed(drawn) & (drawn != row).any(axis=1)]

    def _pick(self, pool: NDArray, tabu: deque[str]) -> NDArray:
        """Return the `(1, d)` candidate with the least mean cost of its nearest neighbours."""
        distances = (self._rows[None] != pool[:, None]).sum(axis=2)
        nearest = np.argsort(distances, axis=1, kind="stable")[:, : self.options.nearest]
        with np.errstate(over="ignore"):
            scores = self._costs[nearest].mean(axis=1)
        avoided = np.isin(self.archive.digests(pool), list(tabu))
        return pool[[int(np.argmin(scores + avoided * (_PENALTY + 0.1 * np.abs(np.minimum(scores, _FAILED)))))]]
