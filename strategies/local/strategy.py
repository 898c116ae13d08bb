"""Iterated local search that knows which parameters interact and which are alike."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Moves, Strategy, Task, option

from ..annealing import Annealing
from ..archive import Archive, is_small
from .catalogue import Catalogue
from .climbing import Asking, Climb, Costs
from .credit import Credit
from .kicks import Kicks
from .memory import Memory
from .neighbourhood import Neighbourhood
from .pairs import Pairs

_ROUND, _REPAIRED = 32, 2
_ANNEALED = 5  # batches a turn
_EXPLORED, _HEAT = 0.5, 0.6  # annealing's share of the turns, and its heat: it is to leave what the others have found
_TURNS = 30  # of all parameters, in which annealing settles from anywhere
_REPEATS = 16


@dataclass(frozen=True)
class LocalOptions:
    """Options of `local`."""

    kick: int = option(3, "most interacting parameters that are changed together with one", low=1, high=100)
    temperature: float = option(0.0005, "how much worse than the best a repaired kick may be, at first", low=0, high=1)
    alike: float = option(0.2, "share of the budget by which alike parameters change together", low=0, high=1)
    sweep: float = option(0.5, "share of the budget by which each single change has its first turn", low=0, high=1)


class LocalSearch(Strategy):
    """Iterated local search (Lourenço, Martin and Stützle 2003) on the structure that a problem declares.

    Moves are `set these parameters to this value`: a single one, or all that belong to one node. First a move is made
    on all alike parameters at once: programs repeat their layers, so what pays in one often pays in all. Then each move
    has its turn, the most promising first (see `Catalogue`), and when none is left each pair of moves of interacting
    parameters (see `Pairs`), if the budget is enough for all: a variable neighbourhood descent (Hansen and Mladenović
    2001). From there on half of the turns are a few batches of `annealing`, hot and deaf to what the others find, from
    a random candidate where there is time for 30 turns of all parameters: the default may lie where small changes do
    not lead out. Else it starts from what was found. The other half five operators share by what they gain:
    `alike`, `once` and `pairs` go on with these three; `near` and `place` change a few interacting parameters at
    random. Of each round of such kicks the best are repaired by single changes around them, and kept if the result is
    better, or hardly worse than the best (record-to-record travel, Dueck 1993, with a tolerance that falls to zero). A
    kick that paid is tried at other places that are alike. Improvements that do not interact are merged.

    Without a declared structure nothing is alike, and kicks are of any parameters. In small spaces nothing is measured
    twice.
    """

    Options: ClassVar[type] = LocalOptions
    uses_structure: ClassVar[bool] = True
    options: LocalOptions

    def __init__(self, task: Task, budget: int, rng: np.random.Generator, options: LocalOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._moves, self._near = Moves(task.space), Neighbourhood(task)
        self._catalogue = Catalogue(task.space, self._moves, self._near, rng)
        self._pairs = Pairs(self._catalogue, self._near, rng)
        self._climb = Climb(task.space, self._near, self._catalogue, rng)
        self._kicks = Kicks(self._moves, self._near, options.kick)
        self._annealing: Annealing | None = None
        self._state: NDArray = task.default.astype(task.space.dtype)
        self._cost = self._best = np.inf
        self._found = self._state, np.inf  # the best that others proposed
        self._alike, self._looked_at = np.empty(0, np.int64), np.nan  # kinds, and at which cost they were listed
        self._operators: dict[str, Callable[[], Asking]] = {
            "alike": self._everywhere,
            "once": self._once,
            **({"pairs": self._paired} if len(self._pairs) else {}),
            "near": partial(self._kick, self._kicks.near),
            "place": partial(self._kick, partial(self._kicks.at_places, catalogue=self._catalogue)),
        }
        self._credit, self._anneals = Credit(tuple(self._operators)), False
        self._search = self._play()
        self._memory = Memory(Archive(task.space, rng), self._take_over) if is_small(task, budget) else None
        if self._memory:
            self._search = self._memory.without_repeats(self._search)
        self._rows, self._costs, self._told = next(self._search), np.empty(0), 0
        self._spent = 0  # of what was told, how much was asked for

    def ask(self, n: int) -> NDArray:
        """Return what is left of the present round, at most `n` rows of it; none if nothing can change."""
        if len(self._rows) and len(self._costs) == len(self._rows):
            costs, self._costs = self._costs, np.empty(0)
            self._rows = self._search.send(costs)
        return self._rows[len(self._costs) : len(self._costs) + n]

    def tell(self, configs: NDArray, values: Costs) -> None:
        """Take the costs; the search goes on from them when it is asked, and knows by then what others found."""
        self._costs = np.append(self._costs, values)
        self._told += len(values)
        self._spent += len(values)
        if self._annealing and not self._anneals:
            self._annealing.observe(configs, np.full(len(values), np.inf))

    def observe(self, configs: NDArray, values: Costs) -> None:
        """Let time pass, and go on from a candidate of others that is better than the state, in the next turn."""
        self._told += len(values)
        if self._annealing:
            self._annealing.observe(configs, np.full(len(values), np.inf))
        if self._memory:
            self._memory.learn(configs, values)
        self._take_over(configs, values)

    def _take_over(self, configs: NDArray, values: Costs) -> None:
        """Remember the best of what others proposed, for the next turn."""
        best = int(np.argmin(values))
        if values[best] < self._found[1]:
            self._found = configs[best].copy(), float(values[best])

    def _play(self) -> Asking:
        self._cost = self._best = float((yield self._state[None])[0])
        while not len(self._moves.movable):
            yield self._state[None][:0]  # nothing can change
        while self._told < self.options.alike * self.budget and self._is_left():
            yield from self._take("alike")
        told = -1
        while told < self._told < self.options.sweep * self.budget:  # ends when nothing is left to look at
            told = self._told
            yield from self._take("once")
            if told == self._told and 0 < self._pairs.count(self._state) <= self.budget - told:
                yield from self._take("pairs")
        annealing = self._annealing = yield from self._begun()
        while True:
            if self.rng.random() < _EXPLORED:
                yield from self._anneal(annealing)
            else:
                yield from self._take(self._credit.choose(self.rng))

    def _begun(self) -> Generator[NDArray, Costs, Annealing]:
        """Return annealing from a random candidate if that runs and there is time to settle, else from the state."""
        left = max(1, self.budget - self._told)
        annealing = Annealing(self.task, left, self.rng, Annealing.Options(heat=_HEAT))
        start, cost = self._state[None], np.array([self._cost])
        if _EXPLORED * left >= _TURNS * len(self._moves.movable):
            drawn = self.task.space.sample(1, self.rng)
            known = yield drawn
            if np.isfinite(known[0]):
                start, cost = drawn, known
        annealing.observe(start, cost)
        return annealing

    def _take(self, operator: str) -> Asking:
        """Give an operator its turn."""
        if self._found[1] < self._cost:
            self._move(*self._found)
        best, spent = self._best, self._spent
        yield from self._operators[operator]()
        self._credit.learn(operator, _gain(best, self._best), self._spent - spent)

    def _anneal(self, annealing: Annealing) -> Asking:
        """Go on with annealing, and take what is better than the state."""
        self._anneals = True
        for _ in range(_ANNEALED):
            rows = annealing.ask(_ROUND)
            if not len(rows):
                break
            costs = yield rows
            annealing.tell(rows, costs)
            best = int(np.argmin(costs))
            if costs[best] < self._cost:
                self._move(rows[best].copy(), float(costs[best]))
        self._anneals = False

    def _is_left(self) -> bool:
        """Is there a kind of move that was not made everywhere since the cost last changed?"""
        if not len(self._alike) and self._cost != self._looked_at:
            self._looked_at, self._alike = self._cost, self._catalogue.shared(self._state, self.rng)
        return len(self._alike) > 0

    def _everywhere(self) -> Asking:
        """Make all moves of a kind at once, for a few kinds."""
        if not self._is_left():
            return
        kinds, self._alike = self._alike[:_ROUND], self._alike[_ROUND:]
        rows = np.array([self._catalogue.everywhere(self._state, kind) for kind in kinds])
        if len(rows) and len(rows := rows[(rows != self._state).any(axis=1)]):
            self._move(*(yield from self._climb.improve(self._state, self._cost, rows, (yield rows))))

    def _once(self) -> Asking:
        """Make the most promising moves that wait."""
        moves = self._catalogue.next(_ROUND, self._state, self.rng)
        if not len(moves):
            return
        rows = self._catalogue.rows(self._state, moves, self.rng)
        costs = yield rows
        gains = np.array([_gain(self._cost, cost) for cost in costs])
        self._catalogue.learn(moves, gains)
        self._move(*(yield from self._climb.improve(self._state, self._cost, rows, costs)))
        self._catalogue.waiting[moves[gains > 0]] = True

    def _paired(self) -> Asking:
        """Make the most promising of the waiting pairs of moves."""
        rows = self._pairs.next(_ROUND, self._state)
        if len(rows):
            self._move(*(yield from self._climb.improve(self._state, self._cost, rows, (yield rows))))

    def _kick(self, kick: Callable[..., NDArray]) -> Asking:
        """Kick the state in many ways, and take what improves or repair the best."""
        origin, rows = self._state, kick(self._state, _ROUND, rng=self.rng)
        costs = yield rows
        if costs.min() < self._cost:
            self._move(*(yield from self._climb.improve(origin, self._cost, rows, costs)))
            yield from self._repeat(origin)
            return
        order = np.argsort(costs, kind="stable")
        for i in order[(rows[order] != origin).any(axis=1)][:_REPAIRED]:
            columns = np.flatnonzero(rows[i] != origin)
            row, cost, before = rows[i], float(costs[i]), self._state
            if before is not origin:
                row = self._climb.merge(origin, np.stack([rows[i], before]))
                cost = float((yield row[None])[0])
            row, cost = yield from self._climb.repair(row, cost, columns)
            tolerance = self.options.temperature * max(0.0, 1 - self._told / self.budget)
            better = cost < self._best
            if cost < self._cost or cost <= self._best * (1 + tolerance):
                self._move(row, cost)
            if better:
                yield from self._repeat(before)

    def _repeat(self, before: NDArray) -> Asking:
        """Make the last step again at other places that are alike."""
        rows = self._kicks.elsewhere(self._state, np.flatnonzero(self._state != before), _REPEATS, self.rng)
        if len(rows):
            self._move(*(yield from self._climb.improve(self._state, self._cost, rows, (yield rows))))

    def _move(self, row: NDArray, cost: float) -> None:
        """Make this the state, and look again at what has changed and what interacts with it."""
        changed = np.flatnonzero(row != self._state)
        if len(changed):
            around = self._near.around(changed)
            self._catalogue.wake(around)
            self._pairs.wake(around)
            self._state, self._cost = row, cost
            self._best = min(self._best, cost)


def _gain(before: float, after: float) -> float:
    """Return by how much of itself a cost has fallen; 1 from inf, and 0 where both are inf."""
    if np.isinf(before) or np.isinf(after):
        return float(np.isinf(before)) - float(np.isinf(after))
    return (before - after) / before if before > 0 else 0.0
