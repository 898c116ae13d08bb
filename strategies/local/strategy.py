"""Iterated local search that knows which parameters interact and which are alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Moves, Strategy, Task, option

from ..archive import Archive, is_small
from .catalogue import Catalogue
from .cost_cache import CostCache
from .descent import Asking, Costs, Descent
from .exploration import SHARE, Exploration
from .kicks import Kicks
from .neighbourhood import Neighbourhood
from .operator_selection import OperatorSelection
from .operators import Operators
from .pairs import Pairs
from .search_state import SearchState, gain


@dataclass(frozen=True)
class LocalOptions:
    """Options of `local`."""

    kick: int = option(3, "largest number of interacting parameters that a kick adds to one", low=1, high=100)
    temperature: float = option(
        0.0005, "initial share by which a repaired kick may be worse than the best", low=0, high=1
    )
    alike: float = option(0.2, "share of the budget within which alike parameters change together", low=0, high=1)
    sweep: float = option(0.5, "share of the budget within which each single change is tried once", low=0, high=1)


class LocalSearch(Strategy):
    """Iterated local search (Lourenço, Martin and Stützle 2003) on the structure that a problem declares.

    A move sets a single parameter, or all parameters of one node, to one value. The search begins with a variable
    neighbourhood descent (Hansen and Mladenović 2001) of three steps:
      - `alike` makes a move on all alike parameters at once: programs repeat their layers, so what pays in one often
        pays in all.
      - `once` tries each move, the most promising first (see `Catalogue`).
      - `pairs` tries each pair of moves of interacting parameters (see `Pairs`), if the budget is enough for all.

    Then half of the turns are a few batches of hot `annealing` that does not adopt what the other operators find. It
    starts from a random candidate if the budget allows 30 turns of all parameters (small changes may not lead away from
    the default), else from the best found so far. The other half is shared by five operators according to
    their gains: `alike`, `once` and `pairs` as above; `near` and `place` change a few interacting parameters at random.
    The best of these kicks are repaired by single changes around them, and kept if the result is better, or hardly
    worse than the best (record-to-record travel, Dueck 1993, with a tolerance that falls to zero). A kick that paid is
    tried at other alike places. Improvements that do not interact are merged.

    Without a declared structure no parameters are alike, and kicks change any parameters. In small spaces no candidate
    is measured twice.
    """

    Options: ClassVar[type] = LocalOptions
    uses_structure: ClassVar[bool] = True
    options: LocalOptions

    def __init__(self, task: Task, budget: int, rng: np.random.Generator, options: LocalOptions) -> None:
        super().__init__(task, budget, rng, options)
        moves, near = Moves(task.space), Neighbourhood(task)
        catalogue = Catalogue(task.space, moves, near, rng)
        self._pairs = Pairs(catalogue, near, rng)
        self._state = SearchState(task.default.astype(task.space.dtype), near, catalogue, self._pairs)
        self._is_fixed = not len(moves.movable)
        kicks, descent = Kicks(moves, near, options.kick), Descent(task.space, near, catalogue, rng)
        self._do = Operators(self._state, catalogue, self._pairs, kicks, descent, self._tolerance, rng)
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
