"""Kernels that are tuned by a search strategy of the suite: a run of some evaluations on each kernel's own task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate
from ..core.level import Level
from ..core.problem import Evaluations, Problem
from ..core.task import Strategies
from ..loop import Answer, search
from .jobs import Job
from .library import KernelLibrary
from .noise import mixed, normal
from .settings import FleetSettings

_BATCH = 16
"""Candidates of one `ask`."""


def searched(
    library: KernelLibrary, job: Job, settings: FleetSettings, place: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the different `(n, w)` settings that a strategy tried on one kernel, and their `(n,)` measured seconds.

    Raises:
      UserError: there is no such strategy, or it raised an error.
    """
    kernel = int(job.kernels[place])
    strategies: Strategies = library.strategies
    made, problem = strategies.strategy(settings.search), library.problem(job.version, kernel)
    seed = [job.seed, int(library.content[kernel]), job.version]
    tried, costs = [problem.default_row()[None][:0]], [np.zeros(0)]
    settings_of: dict[str, Any] = {"registry": strategies, "answer": _noisy(problem, made.level, seed, settings)}
    rng = np.random.default_rng(seed)
    for batch in search(made, problem, settings.evaluations, rng, batch=_BATCH, owner=settings.search, **settings_of):
        tried.append(batch.configs)
        costs.append(batch.values)
    configs, seconds = np.concatenate(tried), np.concatenate(costs)
    rows, first = np.unique(configs, axis=0, return_index=True)
    return library.settings_of(job.version, kernel, rows), seconds[first]


def _noisy(problem: Problem, level: Level, seed: list[int], settings: FleetSettings) -> Answer:
    """Return what measures candidates on the fleet: with noise."""

    def answer(configs: NDArray, _: float) -> Evaluations:
        found = evaluate(problem, configs, with_parts=level >= Level.PARTS)
        keys = mixed(*seed, 2, *configs.T.astype(np.uint64))
        return replace(found, values=found.values * np.exp(settings.noise * normal(keys)))

    return answer
