"""A walk on a surrogate that a policy leads: in each step, every parameter goes up, down or stays (PPO)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task, option

from .clusters import representatives
from .model_search import BestFound, ModelSearch, Surrogate
from .planned import Steps, check_order, fitness

_STILL = 0.75
"""A walk ends at the first step in which this share of the parameters stays, as in its code."""


@dataclass(frozen=True)
class ChameleonOptions:
    """Options of `published:chameleon`."""

    plan: int = option(64, "best candidates of the walks, which are clustered (its code)", low=2, high=10_000)
    random: float = option(0.05, "random candidates of a plan, relative to `plan` (its code)", low=0, high=1)
    walks: int = option(32, "walks for a plan, from random candidates (ours; its code: 128)", low=1, high=10_000)
    steps: int = option(8, "largest number of steps of a walk (ours; its code: 500)", low=1, high=10_000)
    rate: float = option(1e-3, "learning rate of the policy (its code)", low=0, high=1)
    discount: float = option(0.9, "weight of the next step's reward (its code)", low=0, high=1)
    trace: float = option(0.99, "lambda of generalised advantage estimation (its code)", low=0, high=1)
    clip: float = option(0.2, "clipping of the ratio of probabilities (its code)", low=0, high=10)
    entropy: float = option(0.3, "weight of the policy's entropy (its code)", low=0, high=100)
    epochs: int = option(3, "epochs of an update (its code)", low=1, high=1000)
    clusters: bool = option(True, "measure only a representative of each cluster of the plan (its code)")
    step: int = option(8, "by how many clusters their number grows (its code)", low=1, high=10_000)
    threshold: float = option(2.5, "the number grows while the spread is divided by this (its code)", low=1, high=1e9)


class Chameleon(ModelSearch):
    """A learned policy that walks on a surrogate, and adaptive sampling, in the style of Chameleon (Ahn et al. 2020).

    Reproduced, from its public code: boosted trees that learn the speed; a policy, trained by PPO with the predicted
    speed as the reward, that steps every parameter down, up or not at all; a walk ends when three quarters of the
    parameters stay; the best that the walks came across are clustered, and a candidate of each cluster is measured.

    Different here: trees see the indices of parameters, not features of loops; fewer and shorter walks, made side by
    side, and one update for all of them; advantages are standardised; clusters as in `published:chameleon-sampling`;
    the parameters of permutations stay, and so do those that constraints tie if the step is forbidden.

    Not reproduced: its templates and its transfer between operators.
    """

    Options: ClassVar[type] = ChameleonOptions
    options: ChameleonOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: ChameleonOptions) -> None:
        check_order(task, "published:chameleon")
        super().__init__(task, budget, rng, options)
        from .networks import Ppo  # it loads JAX

        self.surrogate = Surrogate(task.space, fitness, rng)
        self._steps = Steps(task.space)
        self._policy = Ppo(len(task.space), len(self._steps.columns), options, int(rng.integers(2**31)))

    def explore(self, best: BestFound) -> None:
        """Walk, and let the policy learn."""
        o, steps = self.options, self._steps
        shape = o.steps, o.walks
        states = np.empty((*shape, len(self.task.space)), np.float32)
        actions, rewards = np.zeros((*shape, len(steps.columns)), np.int8), np.zeros(shape)
        walking = np.zeros((o.steps + 1, o.walks), bool)
        rows, walking[0] = self.task.space.sample(o.walks, self.rng), True
        best.add(rows, self.surrogate.predict(rows))
        for t in range(o.steps):
            states[t] = steps.scaled(rows)
            actions[t] = self._policy.draw(states[t], self.rng)
            moved = steps.taken(rows, actions[t] - 1)
            rewards[t] = self.surrogate.predict(moved)
            best.add(moved[walking[t]], rewards[t, walking[t]])
            still = (moved[:, steps.columns] == rows[:, steps.columns]).mean(axis=1)
            walking[t + 1] = walking[t] & (still < _STILL)
            rows = moved
        self._policy.learn(states, actions, rewards, walking, steps.scaled(rows), self.rng)

    def chosen(self, configs: NDArray) -> NDArray:
        """Return a representative of each cluster."""
        o, seed = self.options, int(self.rng.integers(2**31))
        if not o.clusters:
            return configs
        return configs[representatives(configs, self.task.space, len(configs), o.step, o.threshold, seed)[0]]
