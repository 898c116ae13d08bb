"""Kernels that are tuned by a search strategy of the suite: a run of some evaluations on each kernel's own task."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate
from ..core.problem import Problem
from ..core.strategy import Strategy, tell
from ..core.task import Strategies
from ..errors import error_boundary
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
    with error_boundary(f"strategy {settings.search}", "tuning a kernel"):
        task = problem.task(made.uses_structure, strategies, made.uses_parts)
        strategy = made(task, settings.evaluations, np.random.default_rng(seed), made.Options())
        configs, seconds = _run(strategy, problem, seed, settings)
    rows, first = np.unique(configs, axis=0, return_index=True)
    return library.settings_of(job.version, kernel, rows), seconds[first]


def _run(
    strategy: Strategy, problem: Problem, seed: list[int], settings: FleetSettings
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return all candidates, and their noisy seconds."""
    tried, costs, left = [problem.default_row()[None][:0]], [np.zeros(0)], settings.evaluations
    while left > 0:
        configs = problem.space.check(strategy.ask(min(_BATCH, left)))[:left]
        if not len(configs):
            break
        found = evaluate(problem, configs, with_parts=strategy.uses_parts)
        keys = mixed(*seed, 2, *configs.T.astype(np.uint64))
        noisy = found.values * np.exp(settings.noise * normal(keys))
        tried.append(configs)
        costs.append(noisy)
        left -= len(configs)
        if left > 0:
            tell(strategy, configs, noisy, found.parts)
    return np.concatenate(tried), np.concatenate(costs)
