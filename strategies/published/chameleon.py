"""Chameleon's two searches: any strategy's proposals in clusters, and a walk on a surrogate that a policy leads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Space, Strategy, Task, Told, UserError, option
from bbo_suite.registry import Registry

from ..regressors import one_thread
from .model_search import BestFound, ModelSearch, Surrogate
from .planned import Steps, check_order, fitness

_ITERATIONS = 100
_STILL = 0.75
"""A walk ends at the first step in which this share of the parameters stays, as in its code."""


@dataclass(frozen=True)
class SamplingOptions:
    """Options of `published:chameleon-sampling`."""

    member: str = option("published:autotvm", "the strategy whose proposals are clustered")
    pool: int = option(64, "proposals that are clustered, if the member makes as many at once (its code)", low=2)
    step: int = option(8, "by how many clusters the number grows (its code)", low=1, high=10_000)
    threshold: float = option(2.5, "the number grows while the spread is divided by this (its code)", low=1, high=1e9)


class ClusteredSampling(Strategy):
    """Another strategy's proposals, clustered, of which representatives are measured: Chameleon's adaptive sampling.

    Reproduced, from the public code of Chameleon (Ahn et al. 2020): k-means with 8, 16, ... clusters, until 8 more no
    longer divide the spread within clusters by 2.5; one candidate of each cluster is measured.

    Different here: candidates are clustered by all parameters, where its code takes the two with the most values; the
    member nearest to the centre is measured, where its code makes a new one from the cluster's values. The strategy is
    told the cost of the representative for each candidate of its cluster.

    The member sees costs only. It should propose many candidates at once; `annealing` and most others propose 20.
    """

    Options: ClassVar[type] = SamplingOptions
    options: SamplingOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: SamplingOptions) -> None:
        super().__init__(task, budget, rng, options)
        if options.member == "published:chameleon-sampling":
            raise UserError("the member of published:chameleon-sampling must be another strategy; name one, or several")
        found = (task.strategies or Registry()).strategy(options.member)
        self._member = found(task, budget, rng.spawn(1)[0], found.Options())
        self._pool: NDArray = task.default[None][:0]
        self._cluster, self._begun = np.empty(0, np.int64), False

    @classmethod
    def members(cls, options: SamplingOptions) -> list[str]:
        """Return the id of the member."""
        return [options.member]

    def ask(self, n: int) -> NDArray:
        """Return a representative of each cluster of the member's proposals; no rows when it has none."""
        self._pool = self._member.ask(max(n, self.options.pool))
        if not len(self._pool):
            return self._pool
        space, seed = self.task.space, int(self.rng.integers(2**31))
        places, self._cluster = representatives(self._pool, space, n, self.options.step, self.options.threshold, seed)
        if not self._begun:  # the first of a strategy's candidates is the default
            self._begun, places[self._cluster[0]] = True, 0
        order = np.argsort(places)
        self._cluster = np.argsort(order)[self._cluster]
        return self._pool[places[order]]

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Tell the member, for each of its proposals, the cost of the cluster's representative."""
        self._member.receive(Told(self._pool, values[self._cluster]))

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let the member observe."""
        self._member.observe(configs, values)

    def diagnostics(self) -> dict[str, float]:
        """Return those of the member."""
        return self._member.diagnostics()


def representatives(
    configs: NDArray, space: Space, most: int, step: int, threshold: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cluster `(n, d)` candidates, scaled to [0, 1], and choose one of each cluster.

    Args:
      most: the largest number of clusters.
      step: the number of clusters grows by this.
      threshold: it stops to grow when this many more no longer divide the spread by the threshold.
      seed: of the first centres.

    Returns:
      `(k,)` places of the candidates that are nearest to the centres, and the `(n,)` cluster of each candidate.
    """
    from sklearn.cluster import KMeans

    points = configs / np.maximum(space.sizes - 1, 1)
    most = min(most, len(np.unique(configs, axis=0)))
    spread = np.inf
    with one_thread():
        for k in [*range(step, most, step), most]:
            found = KMeans(k, n_init=1, max_iter=_ITERATIONS, random_state=seed).fit(points)
            if found.inertia_ * threshold >= spread:
                break
            spread = found.inertia_
    distances = ((points - found.cluster_centers_[found.labels_]) ** 2).sum(axis=1)
    order = np.lexsort((distances, found.labels_))
    return order[np.flatnonzero(np.diff(found.labels_[order], prepend=-1))], found.labels_.astype(np.int64)


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
