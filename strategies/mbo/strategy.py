"""Model-based optimization as XTAT uses it: learn the cost, search the model, measure what it promises."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Strategy, Task, option

from .acquisition import children, maximise
from .archive import Archive
from .encoding import Encoding
from .ensemble import Ensemble
from .targets import targets

_GROWTH = 10
_LARGEST_ROUND = 100
_CELLS = 20_000_000  # of a population: it shrinks above 200,000 parameters, or a search would not fit into memory


@dataclass(frozen=True)
class ModelOptions:
    """How the models are chosen and searched."""

    threshold: float = option(0.5, "cross-validated R^2 from which a regressor joins the ensemble", -1.0, 1.0)
    folds: int = option(3, "folds of the cross-validation", 2, 20)
    exploration: float = option(0.0, "weight of the models' disagreement in the acquisition", -10.0, 10.0)
    initial: int = option(100, "candidates before the first model", 1, 100_000)
    generations: int = option(10, "generations of the search on the models", 1, 1000)
    population: int = option(100, "candidates in a generation of that search", 2, 10_000)
    mutants: float = option(0.25, "share of a batch that no model chose: mutants of the best", 0.0, 1.0)


class ModelBasedOptimization(Strategy):
    """Regressors are fitted to all costs so far; an evolutionary search maximises the mean of the good ones.

    Phothilimthana et al. 2021 (XTAT), who follow Angermueller et al. 2020 (DyNA PPO): of ridge, random forest,
    gradient boosting and a neural network those of a cross-validated R^2 of at least `threshold` are averaged, or the
    single best one is taken if there is none. Candidates are never proposed twice. Hyperparameters are ours: the
    authors published none.

    Where this differs from the publication:
      - Forest, boosting and network are fitted only when the data grew by 30 %, and on 2,000 rows at most; ridge is
        fitted to all rows in every round (see `Ensemble`).
      - Costs are replaced by normal scores of their ranks, so failures and outliers can be learned from (`targets`).
      - A share of each batch is plain mutants of the best candidates: no model is right where nothing was measured.
      - A round makes a tenth of the known candidates, 100 at most, however few are asked for at a time: small batches
        are served from it, and the models learn between rounds only.
    """

    Options = ModelOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: ModelOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._encoding, self._moves = Encoding(task.space, rng), Moves(task.space)
        self._population = min(options.population, max(10, _CELLS // len(task.space)))
        self._archive = Archive(task.space, self._encoding, self._population, rng)
        self._ensemble = Ensemble(self._encoding.width, options.threshold, options.folds, rng)
        self._queue = np.zeros((0, len(task.space)), task.space.dtype)

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Store the costs; models are fitted when the next round is planned."""
        self._archive.tell(configs, values)

    def ask(self, n: int) -> NDArray:
        """Return the next candidates of the round, fewer than `n` at its end, none when the space is covered."""
        if not len(self._queue):
            self._queue = self._plan(n)
        batch, self._queue = self._queue[:n], self._queue[n:]
        return batch

    def _plan(self, n: int) -> NDArray:
        """Return a new round: whole batches of `n`."""
        told = len(self._archive.values)
        goal = min(told // _GROWTH, _LARGEST_ROUND) if told else min(self.options.initial, self.budget // 4)
        size = n * max(1, -(-goal // n))
        return self._archive.claim(self._proposals(size) if told else self._design(size), size)

    def _design(self, size: int) -> NDArray:
        """Return the default, mutants of it with 2 changes in the mean, and as many random candidates."""
        random = self.task.space.sample(size // 2, self.rng)
        near = np.tile(self.task.default, (size - len(random), 1)).astype(random.dtype)
        near[1:] = self._moves.mutate(near[1:], 1 + self.rng.poisson(1.0, len(near) - 1), self.rng)
        order = np.append(0, 1 + self.rng.permutation(size - 1))  # small batches and budgets get of both
        return np.concatenate([near, random])[order]

    def _proposals(self, size: int) -> NDArray:
        """Return candidates to take a round of `size` from, what is wanted most first."""
        mutants = self._fresh(children(self._archive.elites, 2 * size, self._moves, self.rng))
        if not self._ensemble.update(self._archive.features, targets(self._archive.values)):
            return mutants
        promising = self._fresh(self._search(size))
        by_models = size - self._stochastic_round(size * self.options.mutants)
        return np.concatenate([promising[:by_models], mutants[: size - by_models], promising[by_models:]])

    def _search(self, size: int) -> NDArray:
        """Return what the search on the models visits, the most promising first."""
        random = self.task.space.sample(self._population // 4 or 1, self.rng)
        start = np.concatenate([self._archive.elites[: self._population - len(random)], random])
        generations = self.options.generations
        each = max(self._population, -(-2 * size // generations))  # enough to choose a whole round from
        return maximise(self._promise, start, generations, each, self._moves, self.rng)

    def _promise(self, configs: NDArray) -> NDArray:
        predictions = self._ensemble.predict(self._encoding.encode(configs))
        return self.options.exploration * predictions.std(axis=0) - predictions.mean(axis=0)

    def _fresh(self, configs: NDArray) -> NDArray:
        return configs[self._archive.fresh(configs)]

    def _stochastic_round(self, x: float) -> int:
        """Return x rounded up or down with chances that keep its mean: a share of a batch of one."""
        return int(x + self.rng.random())
