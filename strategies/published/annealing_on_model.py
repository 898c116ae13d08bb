"""Simulated annealing on a surrogate: AutoTVM, and AdaTune, whose surrogate knows how uncertain it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Space, Task, option

from .model_search import BestFound, ForestSurrogate, ModelSearch, Surrogate, ranks
from .planned import fitness


@dataclass(frozen=True)
class AutoTvmOptions:
    """Options of `published:autotvm`."""

    plan: int = option(64, "candidates that are measured before the surrogate is fitted (its code)", low=1, high=10_000)
    random: float = option(0.05, "share of random candidates (its code)", low=0, high=1)
    chains: int = option(128, "annealing chains on the surrogate (its code)", low=1, high=10_000)
    steps: int = option(500, "largest number of steps of a chain for a plan (its code)", low=1, high=100_000)
    patience: int = option(50, "steps without a new candidate for the plan that end annealing (its code)", low=1)
    model: bool = option(True, "anneal on the surrogate; else the chains anneal on measured costs, to compare")


class Chains:
    """Simulated annealing on a surrogate: chains that persist from plan to plan, each from a random candidate."""

    def __init__(self, space: Space, moves: Moves, options: AutoTvmOptions, rng: Generator) -> None:
        self._moves, self._options, self._rng = moves, options, rng
        self._points = space.sample(options.chains, rng)
        self._values = np.zeros(options.chains)  # a candidate that was never scored counts as the median

    def explore(self, surrogate: Surrogate, best: BestFound) -> None:
        """Change a random parameter of each chain by turns; the temperature falls from 1 to 0 on a line."""
        leaves, every, last = surrogate.leaves(self._points), np.arange(len(self._points)), 0
        self._values = surrogate.scores(leaves)
        best.add(self._points, self._values)
        for step in range(self._options.steps):
            moved = self.moved()
            after = surrogate.leaves_after(self._points, leaves, moved)
            found = surrogate.scores(after)
            accepted = self.accept(moved, found, every, 1 - step / self._options.steps)
            np.copyto(leaves, after, where=accepted)
            last = step if best.add(moved, found) else last
            if step - last >= self._options.patience:
                break

    def moved(self) -> NDArray:
        """Return `(c, d)` changes of the chains' candidates."""
        return self._moves.mutate(self._points, np.ones(len(self._points), np.int64), self._rng)

    def accept(
        self, moved: NDArray, found: NDArray[np.float64], chains: NDArray[np.int64], heat: float
    ) -> NDArray[np.bool_]:
        """Let `(k,)` chains go on from `(k, d)` changes, by AutoTVM's rule; return which `(k,)` do."""
        gains = (found - self._values[chains]) / (heat + 1e-5)
        accepted = self._rng.random(len(found)) < np.exp(np.minimum(gains, 1.0))
        chains = chains[accepted]
        self._points, self._values = self._points.copy(), self._values.copy()
        self._points[chains], self._values[chains] = moved[accepted], found[accepted]
        return accepted


class AutoTvm(ModelSearch):
    """Annealing on a surrogate, in the style of AutoTVM (Chen et al. 2018).

    Reproduced, from its public code: boosted trees that learn the order of costs; persistent chains that change one
    parameter at a time, with its rule of acceptance; a plan of the best that the chains came across; random candidates
    instead of the last of a plan; a first plan of random candidates.

    Different here: the trees are scikit-learn's, fitted to normal scores of ranks instead of XGBoost's loss of pairs;
    they see the indices of parameters, not features of loops; the default comes first.

    Not reproduced: its templates, its features of loops and its transfer from other operators.
    """

    Options: ClassVar[type] = AutoTvmOptions
    options: AutoTvmOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: AutoTvmOptions) -> None:
        super().__init__(task, budget, rng, options)
        self.surrogate = self.new_surrogate()
        self._chains = Chains(task.space, self.moves, options, rng)
        self._spent, self._moved = 0, np.empty(0, np.int64)

    def new_surrogate(self) -> Surrogate:
        """Return the surrogate before it learns anything."""
        return Surrogate(self.task.space, ranks, self.rng, self.options.model)

    def plan(self) -> NDArray:
        """Return the next plan."""
        return super().plan() if self.options.model else self._changes()

    def explore(self, best: BestFound) -> None:
        """Anneal the chains."""
        self._chains.explore(self.surrogate, best)

    def _changes(self) -> NDArray:
        """Return a new change of as many chains as a plan has candidates."""
        moved = self._chains.moved()
        order = self.rng.permutation(len(moved))
        self._moved = order[self.archive.claim(moved[order], self.options.plan)]
        return moved[self._moved] if len(self._moved) else self.random(self.options.plan)

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Without the surrogate, let the chains go on from what was measured."""
        self._spent += len(values)
        if len(self._moved) == len(values):
            scores = ranks(self.surrogate.costs)[-len(values) :]
            self._chains.accept(configs, scores, self._moved, max(0.0, 1 - self._spent / self.budget))


@dataclass(frozen=True)
class AdaTuneOptions(AutoTvmOptions):
    """Options of `published:adatune`."""

    plan: int = option(32, "candidates that are measured before the surrogate is fitted (its code)", low=1, high=10_000)
    random: float = option(0.05, "share of random candidates, unless it adapts (its code)", low=0, high=1)
    chains: int = option(64, "annealing chains on the surrogate (its code: twice the plan)", low=1, high=10_000)
    adaptive: bool = option(True, "set that share to the forest's mean uncertainty, relative to the best (its code)")


class AdaTune(AutoTvm):
    """Annealing on a surrogate that knows its uncertainty, in the style of AdaTune (Li et al. 2020).

    Reproduced, from its public code: a random forest; the expected improvement over the best as the score; AutoTVM's
    chains; a share of random candidates that follows the mean disagreement of the trees on 20 random candidates.

    Different here: trees see the indices of parameters, not features of loops; the default comes first.

    Not reproduced: its main contribution, which ends repeated measurements when their mean is settled. That belongs to
    the measuring, which no strategy here controls; `halide/blur@settled` and the other pipelines of Halide offer it.
    """

    Options: ClassVar[type] = AdaTuneOptions
    options: AdaTuneOptions
    surrogate: ForestSurrogate
    _PROBES = 20

    def new_surrogate(self) -> Surrogate:
        """Return the surrogate before it learns anything."""
        return ForestSurrogate(self.task.space, fitness, self.rng, self.options.model)

    def share(self) -> float:
        """Return the mean standard deviation of the trees; the best candidate has a fitness of 1."""
        if not self.options.adaptive:
            return self.options.random
        probes = self.task.space.sample(self._PROBES, self.rng)
        return min(1.0, float(self.surrogate.moments(probes)[1].mean()))
