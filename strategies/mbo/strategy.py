"""Model-based optimization: models predict what changes of a moving state gain, and choose which to measure."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Strategy, Task

from ..annealing import Annealing
from .neighbours import ModelNeighbours
from .options import ModelOptions

_NEAR = 50  # parameters; an observed candidate that differs in more says nothing about changes of the state


class ModelBasedOptimization(Strategy):
    """Regressors learn what changes of a state are worth; an evolutionary search maximises an acquisition function.

    Phothilimthana et al. 2021 (XTAT), who follow Angermueller et al. 2020 (DyNA PPO): of ridge, random forest,
    gradient boosting and a neural network, those with a cross-validated R^2 of at least `threshold` are averaged, or
    the single best one is taken if none reaches it. Candidates are never proposed twice. The hyperparameters are ours:
    the authors published none.

    Differences from the publication, each of which measurements justified:
      - It is `annealing` in which models choose a share of each batch. The share follows what their candidates gain
        (`Arms`); the rest are random changes.
      - Models predict the cost difference between a candidate and the state that it changes, from features of the
        change (`Features`), instead of the cost from the decisions. So they are useful after fifty evaluations, for
        any number of parameters.
      - A separate model learns which neighbours in a sequence fail (`Failures`). Candidates that are more likely to
        fail than to run are not proposed, changes that are not nearly sure to run are not merged, and the other models
        skip these failures.
      - Models are fitted to the last 1,500 evaluations and at growing intervals, so the time per candidate does not
        grow with the number of evaluations.

    A declared structure is not used: products of features of interacting parameters did not help.
    """

    Options: ClassVar[type] = ModelOptions
    options: ModelOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: ModelOptions) -> None:
        super().__init__(task, budget, rng, options)
        self._neighbours = ModelNeighbours(task, options, rng)
        self._annealing = Annealing(task, budget, rng, options, self._neighbours)

    def ask(self, n: int) -> NDArray:
        """Return the state if its cost is not known yet, and changes of it, some of them chosen by the models."""
        return self._annealing.ask(n)

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the models learn and the state move."""
        self._annealing.tell(configs, values)
        self._neighbours.set_progress(self._annealing.told / self.budget)

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn from another strategy's candidates near the state; continue from one that is better."""
        state = self._annealing.state
        distances = (configs != state).sum(axis=1)
        near = (distances > 0) & (distances <= _NEAR)
        self._neighbours.study(state, self._annealing.cost, configs[near], values[near])
        self._annealing.observe(configs, values)

    def diagnostics(self) -> dict[str, float]:
        """Return the models' cross-validated scores, and how much more often their choices improve than random ones."""
        scores = {f"score/{name}": score for name, score in self._neighbours.scores.items()}
        hits = self._neighbours.hit_rate
        return scores if hits is None else {**scores, "hits/models": hits}
