"""Local search on the structure that a problem declares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Level, Moves, Space, Strategy, Structure, Task, option

from ..annealing import Annealing
from ..archive import Archive, is_small
from ..changes import MutationRate, OperatorCredit, probability_matching, proportions
from .moves import MoveList, Neighbourhood, Pairs, Ties
from .operators import ROUND, Asking, Costs, Descent, Operators, Perturbations, SearchState, gain


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
    """Iterated local search on the declared structure (Lourenço, Martin and Stützle 2003).

    A move sets a single parameter, or all parameters of one node, to one value. The search begins with a variable
    neighbourhood descent (Hansen and Mladenović 2001) of three steps:
      - `alike` makes a move on all alike parameters at once: programs repeat their layers, so what pays in one often
        pays in all.
      - `once` tries each move, the most promising first (see `MoveList`). If the budget does not allow to try each
        alone, several are tried at once (`MutationRate`): if together they cost nothing, none of them is tried again.
      - `pairs` tries each pair of moves of interacting parameters (see `Pairs`), if the budget is enough for all.

    Then half of the turns are a few batches of hot `annealing` that does not adopt what the other operators find. It
    starts from a random candidate if the budget allows 30 turns of all parameters (small changes may not lead away from
    the default), else from the best found so far. The other half is shared by five operators according to their gains:
    `alike`, `once` and `pairs` as above; `near` and `place` change a few interacting parameters at random. The best of
    these perturbations are repaired by single changes around them. The result is accepted if it is better, or hardly
    worse than the best (record-to-record travel, Dueck 1993, with a tolerance that falls to zero). A perturbation that
    gained is tried at other alike places. Improvements that do not interact are merged.

    Where each cost belongs to one parameter or to two, parameters that may not differ are moved together: see
    `TiedSearch`.

    Without a declared structure no parameters are alike, and perturbations change any parameters. In small spaces no
    candidate is measured twice.
    """

    Options: ClassVar[type] = LocalOptions
    level: ClassVar[Level] = Level.STRUCTURE
    options: LocalOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: LocalOptions) -> None:
        super().__init__(task, budget, rng, options)
        is_paired = task.structure is not None and task.structure.is_paired
        self._search: TiedSearch | IteratedSearch
        if is_paired:
            self._search = TiedSearch(task, budget, rng, options)
        else:
            self._search = IteratedSearch(task, budget, rng, options)

    def ask(self, n: int) -> NDArray:
        """Return at most `n` candidates; no rows if nothing can change."""
        return self._search.ask(n)

    def tell(self, configs: NDArray, values: Costs) -> None:
        """Learn costs; the search continues at the next `ask`, when it also knows what other strategies found."""
        self._search.tell(configs, values)

    def observe(self, configs: NDArray, values: Costs) -> None:
        """Advance the schedule; the next turn continues from another strategy's candidate if it is better."""
        self._search.observe(configs, values)


_FOR_TIES = 20
"""One evaluation in so many is for the ties."""


class TiedSearch:
    """Learns which parameters are tied, then searches with one parameter for each group of tied ones.

    The first twentieth of the budget is for the ties (see `Ties`), the rest for iterated search on the groups.
    """

    def __init__(self, task: Task, budget: int, rng: Generator, options: LocalOptions) -> None:
        self._task, self._budget, self._rng, self._options = task, budget, rng, options
        self._ties = Ties(task, budget // (2 * _FOR_TIES), rng)
        self._rows = np.concatenate([task.default[None], self._ties.trials]).astype(task.space.dtype)
        self._costs = np.empty(0)
        self._search: IteratedSearch | None = None

    def ask(self, n: int) -> NDArray:
        """Return at most `n` candidates: first trials of ties, then those of the groups."""
        if len(self._costs) < len(self._rows):
            return self._rows[len(self._costs) : len(self._costs) + n]
        if self._search is None:
            self._search = self._begin(self._ties.groups(self._costs[1:]))
        rows = self._search.ask(n)
        if not len(rows) and len(self._firsts) < len(self._labels):  # the groups have no candidate left
            self._search = self._begin(np.arange(len(self._labels)))
            rows = self._search.ask(n)
        return rows[:, self._labels].astype(self._task.space.dtype)

    def _begin(self, labels: NDArray[np.int64]) -> IteratedSearch:
        """Return the search with one parameter for each group."""
        self._labels = labels
        self._firsts = np.unique(self._labels, return_index=True)[1]
        left = max(1, self._budget - len(self._costs))
        return IteratedSearch(_joined(self._task, labels, self._firsts), left, self._rng, self._options)

    def tell(self, configs: NDArray, values: Costs) -> None:
        """Learn the costs of candidates."""
        if self._search is None:
            self._costs = np.append(self._costs, values)
        else:
            self._search.tell(configs[:, self._firsts], values)

    def observe(self, configs: NDArray, values: Costs) -> None:
        """Learn of another strategy's candidates if groups can express them."""
        if self._search is not None:
            grouped = configs[:, self._firsts]
            same = (grouped[:, self._labels] == configs).all(axis=1)
            self._search.observe(grouped, np.where(same, values, np.inf))


def _joined(task: Task, labels: NDArray[np.int64], firsts: NDArray[np.int64]) -> Task:
    """Return a task with one parameter for each group; its features are the sums of those of its members."""
    declared = task.structure
    assert declared
    rows = np.repeat(np.arange(len(labels)), np.diff(declared.starts))
    pairs = np.unique(np.column_stack([labels[rows], labels[declared.neighbours]]), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    features = np.zeros((len(firsts), declared.features.shape[1]), np.float32)
    np.add.at(features, labels, declared.features)
    starts = np.searchsorted(pairs[:, 0], np.arange(len(firsts) + 1))
    structure = Structure(starts, pairs[:, 1].astype(np.int32), features, declared.feature_names)
    space = Space(task.space.sizes[firsts])
    return replace(task, space=space, default=task.default[firsts].astype(space.dtype), structure=structure)


class IteratedSearch:
    """The search that `LocalSearch` describes, on one task."""

    def __init__(self, task: Task, budget: int, rng: Generator, options: LocalOptions) -> None:
        self.task, self.budget, self.rng, self.options = task, budget, rng, options
        moves, near = Moves(task.space), Neighbourhood(task)
        move_list = MoveList(task.space, moves, near, rng)
        self._pairs = Pairs(move_list, near, rng)
        self._state = SearchState(task.default.astype(task.space.dtype), near, move_list, self._pairs)
        self._is_fixed = not len(moves.movable)
        perturbations, descent = Perturbations(moves, near, options.kick), Descent(task.space, near, move_list, rng)
        too_many = np.count_nonzero(move_list.live(self._state.row)) > options.sweep * budget
        strength = MutationRate(len(moves.movable), rng) if too_many else None
        self._do = Operators(
            self._state, move_list, self._pairs, perturbations, descent, self._tolerance, strength, rng
        )
        self._operators: dict[str, Callable[[], Asking]] = {
            "alike": self._do.alike,
            "once": self._do.once,
            **({"pairs": self._do.paired} if len(self._pairs) else {}),
            "near": self._do.near,
            "place": self._do.place,
        }
        self._selection = OperatorSelection(tuple(self._operators))
        self._exploration: Exploration | None = None
        self._evaluated = self._spent = 0  # all candidates, and those that this search asked for
        self._search = self._play()
        self._cache = CostCache(Archive(task.space, rng), self._state.remember) if is_small(task, budget) else None
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
        self._evaluated += len(values)
        self._spent += len(values)
        if self._exploration and not self._exploration.is_asking:
            self._exploration.observe(configs)

    def observe(self, configs: NDArray, values: Costs) -> None:
        """Advance the schedule; the next turn continues from another strategy's candidate if it is better."""
        self._evaluated += len(values)
        if self._exploration:
            self._exploration.observe(configs)
        if self._cache:
            self._cache.learn(configs, values)
        self._state.remember(configs, values)

    def _tolerance(self) -> float:
        """Return the share by which a repaired perturbation may now be worse than the best."""
        return self.options.temperature * max(0.0, 1 - self._evaluated / self.budget)

    def _play(self) -> Asking:
        """Descend, then explore and leave local optima by turns."""
        self._state.measure(float((yield self._state.row[None])[0]))
        while self._is_fixed:
            yield self._state.row[None][:0]
        yield from self._first_descent()
        exploration = Exploration(self._state, self.task, max(1, self.budget - self._evaluated), self.rng)
        yield from exploration.begin()
        self._exploration = exploration
        while True:
            if self.rng.random() < _EXPLORING:
                yield from exploration.turn()
            else:
                yield from self._take(self._selection.choose(self.rng))

    def _first_descent(self) -> Asking:
        """Try moves everywhere, then each move, then each pair, until none waits or the budget's share is spent."""
        while self._evaluated < self.options.alike * self.budget and self._do.has_alike():
            yield from self._take("alike")
        before = -1
        while before < self._evaluated < self.options.sweep * self.budget:
            before = self._evaluated
            yield from self._take("once")
            if before == self._evaluated and 0 < self._pairs.count(self._state.row) <= self.budget - before:
                yield from self._take("pairs")

    def _take(self, operator: str) -> Asking:
        """Run one turn of an operator and learn from its gain."""
        self._state.adopt()
        best, spent = self._state.best, self._spent
        yield from self._operators[operator]()
        self._selection.learn(operator, gain(best, self._state.best), self._spent - spent)


_EXPLORING = 0.5
"""Share of the turns that explore."""

_HEAT, _BATCHES = 0.6, 5
_TURNS = 30  # turns of all parameters in which annealing converges from any start


class Exploration:
    """Hot `annealing`, a few batches at a time, that does not adopt what other operators find.

    It starts from a random candidate if that one runs and the budget allows 30 turns of all parameters: small
    changes may not lead away from the default. Otherwise it starts from the state.

    Args:
      state: is moved to better candidates.
      task: the task.
      budget: candidates that are left for all of local search.
      rng: the only source of randomness.

    Attributes:
      is_asking: true while its own candidates are measured.
    """

    def __init__(self, state: SearchState, task: Task, budget: int, rng: Generator) -> None:
        self._state, self._space, self._rng = state, task.space, rng
        self._settles = _EXPLORING * budget >= _TURNS * len(Moves(task.space).movable)
        self._annealing = Annealing(task, budget, rng, Annealing.Options(heat=_HEAT))
        self.is_asking = False

    def begin(self) -> Asking:
        """Choose where to start."""
        start, cost = self._state.row[None], np.array([self._state.cost])
        if self._settles:
            drawn = self._space.sample(1, self._rng)
            known = yield drawn
            if np.isfinite(known[0]):
                start, cost = drawn, known
        self._annealing.observe(start, cost)

    def turn(self) -> Asking:
        """Continue for a few batches, and move the state to what is better."""
        self.is_asking = True
        for _ in range(_BATCHES):
            rows = self._annealing.ask(ROUND)
            if not len(rows):
                break
            costs = yield rows
            self._annealing.tell(rows, costs)
            best = int(np.argmin(costs))
            if costs[best] < self._state.cost:
                self._state.move(rows[best].copy(), float(costs[best]))
        self.is_asking = False

    def observe(self, configs: NDArray) -> None:
        """Advance the schedule by candidates of other operators, which are not proposed again."""
        self._annealing.observe(configs, np.full(len(configs), np.inf))


_LEAST, _MEMORY = 0.05, 0.8


class OperatorSelection:
    """Probability matching (Fialho et al. 2010, Analyzing bandit-based adaptive operator selection mechanisms).

    The probability of an operator grows with its recent gain per evaluation and never falls below a twentieth. Each
    operator is chosen once before any is chosen again.
    """

    def __init__(self, operators: Sequence[str]) -> None:
        self._operators = list(operators)
        self._credit = OperatorCredit(len(operators))

    def choose(self, rng: Generator) -> str:
        """Return an operator."""
        gains, spent = self._credit.gains, self._credit.trials
        if (spent == 0).any():
            return self._operators[int(np.argmin(spent != 0))]
        chances = probability_matching(proportions(gains / spent), _LEAST)
        return self._operators[int(rng.choice(len(chances), p=chances / chances.sum()))]

    def learn(self, operator: str, gain: float, spent: int) -> None:
        """Add a relative gain and the evaluations that it took; earlier ones then count a fifth less."""
        self._credit.learn(self._operators.index(operator), gain, max(1, spent), _MEMORY)


_IDLE, _OTHERS = 50, 32  # rounds without a new candidate before others are measured; how many others


class CostCache:
    """The costs of all candidates that were measured, by this search or by others.

    Args:
      archive: the proposed candidates.
      report: called with the candidates that are measured when the search proposes nothing new, and their costs.
    """

    def __init__(self, archive: Archive, report: Callable[[NDArray, Costs], None]) -> None:
        self._archive, self._report = archive, report
        self._known: dict[str, float] = {}

    def learn(self, configs: NDArray, costs: Costs) -> None:
        """Remember `(n, d)` candidates with their costs."""
        digests = self._archive.digests(configs)
        self._archive.add(digests)
        self._known.update(zip(digests, costs.tolist(), strict=True))

    def without_repeats(self, search: Asking) -> Asking:
        """Pass on the candidates that a search asks for, except those whose costs are known.

        If the search no longer asks for anything new, other candidates are measured. When the whole space was measured,
        no rows are yielded.
        """
        rows, idle = next(search), 0
        while True:
            digests = self._archive.digests(rows)
            new = rows[self._archive.claim(rows, len(rows))]
            idle = 0 if len(new) else idle + 1
            if len(new):
                self.learn(new, (yield new))
            elif idle > _IDLE:
                yield from self._measure_others()
            rows = search.send(np.array([self._known[digest] for digest in digests]))

    def _measure_others(self) -> Asking:
        others = self._archive.others(_OTHERS)
        costs = yield others
        self.learn(others, costs)
        if len(others):
            self._report(others, costs)
