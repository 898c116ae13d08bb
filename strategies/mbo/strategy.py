"""Model-based optimization: models learn what changes of a moving state are worth, and choose which to measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Strategy, Task, option

from .acquisition import promise
from .archive import Archive
from .arms import Arms
from .ensemble import Ensemble
from .features import Features
from .proposals import Proposals
from .search import maximise
from .state import State

_CELLS = 20_000_000  # of a population: it shrinks above 100,000 parameters, or a search would not fit into memory
_WORST = 10.0  # cost differences beyond so many usual ones tell no more
_UNHURRIED = 5  # evaluations a parameter; a search that has fewer cannot afford to go uphill


@dataclass(frozen=True)
class ModelOptions:
    """How the models are chosen and searched, and how the state moves."""

    threshold: float = option(0.5, "cross-validated R^2 from which a regressor joins the ensemble", -1.0, 1.0)
    folds: int = option(3, "folds of the cross-validation", 2, 20)
    acquisition: Literal["mean", "ucb", "ei", "thompson"] = option("ei", "what is maximised; ei: expected improvement")
    exploration: float = option(1.0, "weight of the standard deviation in ucb", -10.0, 10.0)
    generations: int = option(2, "generations of the search on the models", 0, 1000)
    population: int = option(200, "candidates in a generation of that search", 4, 10_000)
    batch: int = option(20, "candidates between two moves; more when the budget is short of the parameters", 1, 10_000)
    heat: float = option(0.1, "initial temperature, in median cost differences of a change", 0.0, 100.0)
    cooling: float = option(300.0, "initial temperature / final temperature", 1.0, 1e9)
    models: bool = option(True, "let the models choose; false leaves the other arms alone")


class ModelBasedOptimization(Strategy):
    """Regressors learn what changes of the incumbent are worth; an evolutionary search maximises an acquisition.

    Phothilimthana et al. 2021 (XTAT), who follow Angermueller et al. 2020 (DyNA PPO): of ridge, random forest,
    gradient boosting and a neural network those of a cross-validated R^2 of at least `threshold` are averaged, or the
    single best one is taken if there is none. Candidates are never proposed twice. Hyperparameters are ours: the
    authors published none.

    Where this differs from the publication, each because it was measured to pay:
      - Models predict the difference to the state that a candidate changes, from features of the change (`Features`),
        not the cost from the decisions: they know something after fifty evaluations, at any number of parameters.
      - The state moves by annealing's rule, and merges what was accepted (`State`).
      - A share of each batch is model-free: single changes in turns as in `annealing`, and two or three changes of
        neighbouring parameters. Shares follow the rate of improvements (`Arms`).
      - Models are fitted to the last 1,500 evaluations and at growing distances, so a candidate costs the same however
        many were told.
    """

    Options: ClassVar[type] = ModelOptions
    options: ModelOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: ModelOptions) -> None:
        super().__init__(task, budget, rng, options)
        d = len(task.space)
        self._population = min(options.population, max(20, _CELLS // d))
        self._batch = max(options.batch, options.batch * d // budget)
        heat = options.heat * min(1.0, budget / (_UNHURRIED * d))
        self._state = State(task, budget, heat, options.cooling, rng)
        self._proposals, self._archive = Proposals(task, rng), Archive(task.space, rng)
        self._features, self._ensemble = self._describe(task), Ensemble(options.threshold, options.folds, rng)
        self._arms = Arms(("model", "singles", "windows") if options.models else ("singles", "windows"), rng)
        self._makers: list[str] = []
        self._told = 0
        self._best = np.inf

    def _describe(self, task: Task) -> Features:
        return Features(task)

    def ask(self, n: int) -> NDArray:
        """Return changes of the state, before them the state if its cost is not known yet; none at the space's end."""
        n = min(n, self._batch)
        if self._state.pending and not len(self._archive.fresh(self._state.row[None])):
            self._state.back()
        batch = [self._archive.claim(self._state.row[None], 1)] if self._state.pending else []
        self._makers = []
        for arm, rows in self._draw(n - len(batch)):
            batch.append(rows)
            self._makers += [arm] * len(rows)
        left = n - sum(map(len, batch))
        return np.concatenate([*batch, self._archive.others(left)])

    def _draw(self, n: int) -> Iterator[tuple[str, NDArray]]:
        """Yield the arms and what they propose, `n` candidates or fewer in all."""
        for arm, k in self._arms.draw(n, () if self._ensemble.members else ("model",)).items():
            children = self._children(arm, k)
            yield arm, self._archive.claim(children[self.task.space.allowed(children)], k)

    def _children(self, arm: str, n: int) -> NDArray:
        """Return more than `n` children, what is wanted most first."""
        base = self._state.row
        if arm == "singles":
            return self._proposals.singles(base, 2 * n)
        if arm == "windows":
            return self._proposals.windows(base, 2 * n)
        return maximise(self._promise, base, self._proposals, self._population, self.options.generations)

    def _promise(self, children: NDArray) -> NDArray[np.float64]:
        predictions = self._ensemble.predict(self._features.of(self._state.row, children))
        name, weight = self.options.acquisition, self.options.exploration
        return promise(name, predictions, self._ensemble.noise(), self._ensemble.zero, weight, self.rng)

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Move the state, and learn what the changes were worth."""
        base, first = self._state.row, int(self._state.pending)
        self._told += len(values)
        self._arms.progress = self._told / self.budget
        cost = self._state.tell(configs, values)
        different = (configs != base).any(axis=1)
        if np.isfinite(cost) and different.any():
            self._learn(base, configs[different], self._differences(values[different], cost))
        with np.errstate(invalid="ignore"):
            self._arms.credit(self._makers, values[first : first + len(self._makers)] - cost)

    def _differences(self, values: NDArray[np.float64], cost: float) -> NDArray[np.float64]:
        """Return costs minus that of the base in median differences; failures are the worst that can be."""
        scale = self._state.scale or 1.0
        with np.errstate(over="ignore"):
            self._best = min(self._best, cost, values.min())
            self._features.level = float(np.clip((self._state.cost - self._best) / scale, 0, _WORST))
            return np.clip((values - cost) / scale, -_WORST, _WORST)

    def _learn(self, base: NDArray, children: NDArray, differences: NDArray[np.float64]) -> None:
        if self.options.models:
            self._ensemble.learn(self._features.of(base, children), differences)
        self._features.learn(base, children, differences, self._state.row)

    def diagnostics(self) -> dict[str, float]:
        """Return the models' cross-validated scores."""
        return {f"score/{name}": score for name, score in self._ensemble.scores.items()}
