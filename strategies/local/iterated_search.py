"""Iterated local search that knows which parameters interact and which are alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Task

from ..adaptive_moves import MutationRate
from ..archive import Archive, is_small
from .catalogue import Catalogue
from .cost_cache import CostCache
from .descent import Asking, Costs, Descent
from .exploration import SHARE, Exploration
from .kicks import Kicks
from .neighbourhood import Neighbourhood
from .operator_selection import OperatorSelection
from .operators import Operators
from .options import LocalOptions
from .pairs import Pairs
from .search_state import SearchState, gain


class IteratedSearch:
    """The search that `LocalSearch` describes, on one task."""

    def __init__(self, task: Task, budget: int, rng: Generator, options: LocalOptions) -> None:
        self.task, self.budget, self.rng, self.options = task, budget, rng, options
        moves, near = Moves(task.space), Neighbourhood(task)
        catalogue = Catalogue(task.space, moves, near, rng)
        self._pairs = Pairs(catalogue, near, rng)
        self._state = SearchState(task.default.astype(task.space.dtype), near, catalogue, self._pairs)
        self._is_fixed = not len(moves.movable)
        kicks, descent = Kicks(moves, near, options.kick), Descent(task.space, near, catalogue, rng)
        too_many = np.count_nonzero(catalogue.live(self._state.row)) > options.sweep * budget
        strength = MutationRate(len(moves.movable), rng) if too_many else None
        self._do = Operators(self._state, catalogue, self._pairs, kicks, descent, self._tolerance, strength, rng)
        self._operators: dict[str, Callable[[], Asking]] = {
            "alike": self._do.alike,
            "once": self._do.once,
            **({"pairs": self._do.paired} if len(self._pairs) else {}),
            "near": self._do.near,
            "place": self._do.place,
        }
        self._selection = OperatorSelection(tuple(self._operators))
        self._exploration: Exploration | None = None
        self._told = self._spent = 0  # all candidates, and those that this search asked for
        self._search = self._play()
        self._cache = CostCache(Archive(task.space, rng), self._state.note) if is_small(task, budget) else None
        if self._cache:
            self._search = self._cache.without_repeats(self._search)
        self._rows, self._costs = next(self._search), np.empty(0)

    def ask(self, n: int) -> NDArray:
        """Return at most `n` of the remaining rows of the current round; no rows if nothing can change."""
        if len(self._rows) and len(self._costs) == len(self._rows):
            costs, self._costs = self._costs, np.empty(0)
            self._rows = self._search.send(costs)
        return self._rows[len(self._costs) : len(self._costs) + n]

    def tell(self, configs: NDArray, values: Costs) -> None:
        """Store the costs; the search continues at the next `ask`, when it also knows what other strategies found."""
        self._costs = np.append(self._costs, values)
        self._told += len(values)
        self._spent += len(values)
        if self._exploration and not self._exploration.is_asking:
            self._exploration.observe(configs)

    def observe(self, configs: NDArray, values: Costs) -> None:
        """Advance the schedule; the next turn continues from another strategy's candidate if it is better."""
        self._told += len(values)
        if self._exploration:
            self._exploration.observe(configs)
        if self._cache:
            self._cache.learn(configs, values)
        self._state.note(configs, values)

    def _tolerance(self) -> float:
        """Return the share by which a repaired kick may now be worse than the best."""
        return self.options.temperature * max(0.0, 1 - self._told / self.budget)

    def _play(self) -> Asking:
        """Descend, then explore and leave local optima by turns."""
        self._state.measure(float((yield self._state.row[None])[0]))
        while self._is_fixed:
            yield self._state.row[None][:0]
        yield from self._first_descent()
        exploration = Exploration(self._state, self.task, max(1, self.budget - self._told), self.rng)
        yield from exploration.begin()
        self._exploration = exploration
        while True:
            if self.rng.random() < SHARE:
                yield from exploration.turn()
            else:
                yield from self._take(self._selection.choose(self.rng))

    def _first_descent(self) -> Asking:
        """Try moves everywhere, then each move, then each pair, until none waits or the budget's share is spent."""
        while self._told < self.options.alike * self.budget and self._do.has_alike():
            yield from self._take("alike")
        before = -1
        while before < self._told < self.options.sweep * self.budget:
            before = self._told
            yield from self._take("once")
            if before == self._told and 0 < self._pairs.count(self._state.row) <= self.budget - before:
                yield from self._take("pairs")

    def _take(self, operator: str) -> Asking:
        """Run one turn of an operator and learn from its gain."""
        self._state.adopt()
        best, spent = self._state.best, self._spent
        yield from self._operators[operator]()
        self._selection.learn(operator, gain(best, self._state.best), self._spent - spent)
