"""Local search in a learned direction: a network says which step of which parameter will gain most (Q-learning)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task, option

from .planned import Planned, Steps, check_order

_MEMORY, _POOL = 1000, 1000


@dataclass(frozen=True)
class FlexTensorOptions:
    """Options of `published:flextensor`."""

    warmup: int = option(100, "random candidates at first (its code), at most a fifth of the budget", low=1)
    starts: int = option(4, "candidates from which steps are taken, the cheapest not yet used (its code)", 1, 1000)
    plan: int = option(
        20, "steps that are measured at once (ours; its code: one of each parameter)", low=1, high=10_000
    )
    epsilon: float = option(0.8, "first share of random steps (its code)", low=0, high=1)
    decay: float = option(0.01, "rate at which that share falls, per plan (its code)", low=0, high=10)
    least: float = option(0.1, "smallest share of random steps (its code)", low=0, high=1)
    discount: float = option(0.9, "weight of what the next step will gain (its code)", low=0, high=1)
    rate: float = option(0.02, "learning rate of Adadelta (its code)", low=0, high=10)
    trainings: int = option(20, "trainings of the network in a run (its code)", low=1, high=10_000)
    epochs: int = option(20, "epochs of a training (its code)", low=1, high=1000)


class FlexTensor(Planned):
    """Q-learning of the direction of local search, in the style of FlexTensor (Zheng et al. 2020).

    Reproduced, from its public code: random candidates first; steps from the four cheapest candidates not yet used;
    for each parameter a direction, random or the one that the network expects to gain most; a reward of tanh(gain);
    a worse candidate may be used as a start, by chance; a network of four layers of 64, trained by Adadelta on the last
    1,000 steps against a copy of itself.

    Different here: one network for all parameters instead of one each; of all parameters, 20 steps are measured at
    once; gains are relative to the cost of the start; unordered parameters are stepped by index. After a training the
    best is a start again.

    Not reproduced: its space of schedules and its repeated measurements.
    """

    Options: ClassVar[type] = FlexTensorOptions
    options: FlexTensorOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: FlexTensorOptions) -> None:
        check_order(task, "published:flextensor")
        super().__init__(task, budget, rng, options)
        from .networks import QNetwork  # it loads JAX

        self._steps = Steps(task.space)
        width, outputs = len(task.space), 2 * len(self._steps.columns)
        self._network = QNetwork(width, outputs, options.rate, options.discount, int(rng.integers(2**31)))
        self._pool = self.none  # starts not yet used
        self._costs = np.empty(0)
        self._best, self._cost = self._pool, np.inf
        self._from, self._from_costs, self._actions = self._pool, np.empty(0), np.empty(0, np.int64)
        self._memory: list[tuple[NDArray, NDArray, NDArray, NDArray]] = []
        self._plans, self._every = 0, math.ceil(budget / options.plan / options.trainings)

    def begin(self) -> NDArray:
        """Return random candidates."""
        return self.task.space.sample(min(self.options.warmup, max(1, self.budget // 5)), self.rng)

    def plan(self) -> NDArray:
        """Return steps from the cheapest starts; random candidates when none is left."""
        while len(self._pool) and len(self._steps.columns):
            order = np.argsort(self._costs, kind="stable")
            starts, self._pool = self._pool[order[: self.options.starts]], self._pool[order[self.options.starts :]]
            costs, self._costs = self._costs[order[: self.options.starts]], self._costs[order[self.options.starts :]]
            rows = self._walk(starts, costs)
            if len(rows):
                return rows
        self._actions = np.empty(0, np.int64)
        return self.random(self.options.plan)

    def _walk(self, starts: NDArray, costs: NDArray[np.float64]) -> NDArray:
        """Return new candidates a step away from the starts: of each parameter one direction, then the best steps."""
        s, m = len(starts), len(self._steps.columns)
        gains = self._network.gains(self._steps.scaled(starts)).reshape(s, m, 2)
        drawn = max(self.options.epsilon * np.exp(-self.options.decay * self._plans), self.options.least)
        random = self.rng.random((s, m)) < drawn
        up = np.where(random, self.rng.integers(0, 2, (s, m)), gains.argmax(axis=2))
        worth = np.take_along_axis(gains, up[:, :, None], axis=2)[:, :, 0]
        worth = np.where(random, self.rng.permutation(worth.ravel()).reshape(s, m), worth)
        of, parameter = np.divmod(np.argsort(-worth, axis=None, kind="stable"), m)
        of, parameter = of[: 2 * self.options.plan], parameter[: 2 * self.options.plan]
        directions = np.zeros((len(of), m), np.int8)
        directions[np.arange(len(of)), parameter] = 2 * up[of, parameter] - 1
        rows = self._steps.taken(starts[of], directions)
        chosen = np.flatnonzero((rows != starts[of]).any(axis=1))
        chosen = chosen[self.archive.claim(rows[chosen], self.options.plan)]
        self._from, self._from_costs = starts[of[chosen]], costs[of[chosen]]
        self._actions = 2 * parameter[chosen] + up[of[chosen], parameter[chosen]]
        return rows[chosen]

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Keep what steps gained, and train the network from time to time."""
        if len(self._actions) == len(values):
            gains = np.maximum(self._from_costs - values, 0.0) / (np.abs(self._from_costs) + np.finfo(float).tiny)
            states = self._steps.scaled(self._from), self._steps.scaled(configs)
            self._memory.append((states[0], self._actions, states[1], np.tanh(gains)))
        self._plans += 1
        if self._memory and self._plans % self._every == 0:
            memory = [np.concatenate(arrays)[-_MEMORY:] for arrays in zip(*self._memory, strict=True)]
            self._memory = [(memory[0], memory[1], memory[2], memory[3])]
            self._network.train(*self._memory[0], epochs=self.options.epochs, rng=self.rng)
            self._pool = np.concatenate([self._best, self._pool])
            self._costs = np.append(np.full(len(self._best), self._cost), self._costs)

    def remember(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Keep candidates as starts: better ones rather than worse ones."""
        place = int(np.argmin(values))
        if values[place] < self._cost:
            self._best, self._cost = configs[place][None].copy(), float(values[place])
        if np.isfinite(self._cost):
            worse = (values - self._cost) / (abs(self._cost) + np.finfo(float).tiny)
            starts = np.isfinite(values) & (self.rng.random(len(values)) <= np.exp(-0.5 * worse))
            self._pool = np.concatenate([self._pool, configs[starts]])
            self._costs = np.append(self._costs, values[starts])
            order = np.argsort(self._costs, kind="stable")[:_POOL]
            self._pool, self._costs = self._pool[order], self._costs[order]
