"""Adaptive sampling: proposals are clustered, and only a representative of each cluster is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Space, Strategy, Task, Told, UserError, option
from bbo_suite.registry import Registry

from ..regressors import one_thread

_ITERATIONS = 100


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
