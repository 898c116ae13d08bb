"""Model-based optimization: models learn what changes of a moving state are worth, and choose which to measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task, option

from ..annealing import Annealing, AnnealingOptions
from .acquisition import promise
from .arms import Arms
from .ensemble import Ensemble
from .failures import Failures
from .features import Features
from .search import maximise

_CELLS = 20_000_000  # of a population: it shrinks above 100,000 parameters, or a search would not fit into memory
_WORST = 10.0  # cost differences beyond so many usual ones tell no more
_NEAR = 50  # parameters; a candidate of others that differs in more says nothing of changes of the state


@dataclass(frozen=True)
class ModelOptions(AnnealingOptions):
    """How the models are chosen and searched, and how the state moves."""

    threshold: float = option(-1.0, "cross-validated R^2 from which a regressor joins the ensemble", -1.0, 1.0)
    folds: int = option(3, "folds of the cross-validation", 2, 20)
    acquisition: Literal["mean", "ucb", "ei", "thompson"] = option("mean", "what is maximised of the predicted gain")
    exploration: float = option(1.0, "weight of the standard deviation in ucb", -10.0, 10.0)
    generations: int = option(2, "generations of the search on the models", 0, 1000)
    population: int = option(200, "candidates in a generation of that search", 4, 10_000)
    models: bool = option(True, "let the models choose; false leaves annealing alone, without repetitions")


class ModelBasedOptimization(Annealing):
    """Regressors learn what changes of a state are worth; an evolutionary search maximises an acquisition.

    Phothilimthana et al. 2021 (XTAT), who follow Angermueller et al. 2020 (DyNA PPO): of ridge, random forest,
    gradient boosting and a neural network those of a cross-validated R^2 of at least `threshold` are averaged, or the
    single best one is taken if there is none. Candidates are never proposed twice. Hyperparameters are ours: the
    authors published none.

    Where this differs from the publication, each because it was measured to pay:
      - It is `annealing` in which models choose a share of each batch. The share follows what their candidates gain
        (`Arms`); the rest are changes that nobody chose.
      - Models predict the difference to the state that a candidate changes, from features of the change (`Features`),
        not the cost from the decisions: they know something after fifty evaluations, at any number of parameters.
      - Which neighbours in a sequence fail is learned apart (`Failures`). What is likelier to fail than not is not
        proposed, what is not nearly sure to run is not merged, and the other models skip these failures.
      - Models are fitted to the last 1,500 evaluations and at growing distances, so a candidate costs the same however
        many were told.

    A declared structure is not used: products of features of interacting parameters did not gain.
    """

    Options: ClassVar[type] = ModelOptions
    options: ModelOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: ModelOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._population = min(options.population, max(20, _CELLS // len(task.space)))
        self._features, self._ensemble = Features(task), Ensemble(options.threshold, options.folds, rng)
        self._failures = Failures(task.space)
        self._arms = Arms(("model", "changes") if options.models else ("changes",), rng)
        self._makers: list[str] = []

    def _remembers(self) -> bool:
        return True

    def _changed(self, state: NDArray, n: int) -> NDArray:
        """Return `n` or fewer changes of a state, those of the models first."""
        counts = self._arms.draw(n, () if self._ensemble.members else ("model",))
        chosen = self._chosen(state, counts.get("model", 0))
        others = super()._changed(state, n - len(chosen))
        self._makers = ["model"] * len(chosen) + ["changes"] * len(others)
        return np.concatenate([chosen, others])

    def _chosen(self, state: NDArray, n: int) -> NDArray:
        """Return the `n` changes that the models promise most of."""
        if not n:
            return state[None][:0]

        def promised(children: NDArray) -> NDArray[np.float64]:
            predictions = self._ensemble.predict(self._features.of(state, children))
            name, weight = self.options.acquisition, self.options.exploration
            return promise(name, predictions, self._ensemble.noise(), self._ensemble.none, weight, self.rng)

        visited = maximise(promised, state, self._vary, self._population, self.options.generations, self.rng)
        visited = visited[self.task.space.allowed(visited)]
        visited = visited[_apart(visited != state)]
        visited = visited[self._sound(state, visited)]
        return visited[self._claimed(visited, n)]

    def _sound(self, state: NDArray, changed: NDArray, chance: float = 0.5) -> NDArray[np.bool_]:
        """Return which of `(n, d)` changes of a state run with such a chance, by what failed so far."""
        return self._failures.chances(state, changed) > chance

    def _vary(self, configs: NDArray) -> NDArray:
        """Change each of `(n, d)` candidates anywhere, in place."""
        movable, n = self._moves.movable, len(configs)
        if len(movable):
            self._changes.change(configs, np.arange(n), movable[self.rng.integers(0, len(movable), n)])
        return configs

    def _learn(self, base: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn what the changes of `base` were worth, and who makes good ones."""
        own = len(values) - len(self._kinds)
        super()._learn(base, cost, configs[own:], values[own:])
        self._arms.credit(self._makers, np.maximum(-self._differences_to(cost, values), 0.0))
        self._arms.progress = self._told / self.budget
        self._note(base, cost, configs, values)

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn from candidates of others that are near the state, and go on from one that is better."""
        distances = (configs != self._state).sum(axis=1)
        near = (distances > 0) & (distances <= _NEAR)
        self._note(self._state, self._cost, configs[near], values[near])
        super().observe(configs, values)

    def _differences_to(self, cost: float, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what `(n,)` costs are above that of a state, in usual differences; failures are the worst possible."""
        if not np.isfinite(cost):
            return np.zeros(len(values))
        with np.errstate(over="ignore"):
            return np.clip((values - cost) / (self._scale or 1.0), -_WORST, _WORST)

    def _note(self, base: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the models learn what `(n, d)` changes of a base that runs cost, and which failed."""
        if not self.options.models or not len(configs) or not np.isfinite(cost):
            return
        known = ~self._failures.learn(base, configs, np.isinf(values))
        if known.any():
            differences = self._differences_to(cost, values[known])
            self._ensemble.learn(self._features.of(base, configs[known]), differences)
            self._features.learn(base, configs[known], differences)

    def diagnostics(self) -> dict[str, float]:
        """Return the models' cross-validated scores."""
        return {f"score/{name}": score for name, score in self._ensemble.scores.items()}


def _apart(changed: NDArray[np.bool_]) -> list[int]:
    """Return, of `(n, d)` changes, those that touch no parameter of one before: what is accepted of them is merged."""
    touched, kept = np.zeros(changed.shape[1], bool), []
    for i, own in enumerate(changed):
        if not (own & touched).any():
            touched |= own
            kept.append(i)
    return kept
