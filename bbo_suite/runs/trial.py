"""Short trials that tell how long a run will take. Nothing is stored, and no evaluation counts."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import default_value, evaluate
from ..core.level import Level
from ..core.problem import Evaluations, Problem
from ..loop import search
from .study_plan import StudyPlan

ENOUGH_SECONDS, MOST_SECONDS, LEAST_BATCHES = 0.5, 15.0, 18
"""A trial of a strategy ends after the first time and this many batches, because models are fitted and code is compiled
in the first ones; it ends after the second time in any case."""


def evaluation_pace(problem: Problem, workers: int) -> float:
    """Return the seconds that a random candidate takes, all workers together."""
    rng, count = np.random.default_rng(0), max(1, workers)
    problem.workers = workers
    evaluate(problem, problem.space.sample(1, rng))  # the first one may start processes and compile the simulator
    while True:
        configs = problem.space.sample(count, rng)
        started = time.perf_counter()
        evaluate(problem, configs)
        taken = time.perf_counter() - started
        if taken > ENOUGH_SECONDS / 5 or count > 1000:
            return taken / count
        count *= 4


def strategy_seconds(study: StudyPlan, problem: Problem, name: str) -> float:
    """Return the seconds that a strategy itself will need for a run.

    It is asked for its first batches and told costs near the default's, which are drawn instead of evaluated; costs of
    parts are evaluated. From then on it is taken to need as long as for the last third of them.
    """
    found, rng = study.registry.strategy(name), np.random.default_rng(0)
    default, times, done = default_value(problem), [0.0], [0]

    def drawn(configs: NDArray, _: float) -> Evaluations:
        parts = evaluate(problem, configs, with_parts=True).parts if found.level >= Level.PARTS else None
        values = default * rng.lognormal(0.0, 0.1, len(configs))
        return Evaluations(values, np.zeros(len(configs), np.int8), parts=parts)

    settings: dict[str, Any] = {"options": study.strategies[name], "registry": study.registry, "answer": drawn}
    for batch in search(found, problem, study.budget, 0, batch=study.batch, owner=name, **settings):
        times.append(times[-1] + batch.seconds)
        done.append(done[-1] + len(batch.configs))
        if _enough(times):
            break
    if done[-1] < study.budget and not _enough(times):  # the strategy had nothing left to try
        return times[-1]
    late = 2 * (len(times) - 1) // 3
    pace = (times[-1] - times[late]) / (done[-1] - done[late])
    return times[-1] + pace * (study.budget - done[-1])


def _enough(times: list[float]) -> bool:
    return times[-1] > MOST_SECONDS or (times[-1] > ENOUGH_SECONDS and len(times) > LEAST_BATCHES)
