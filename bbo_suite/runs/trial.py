"""Short trials that tell how long a run will take. Nothing is stored, and no evaluation counts."""

from __future__ import annotations

import time

import numpy as np

from ..core.evaluation import default_value, evaluate
from ..core.problem import Problem
from ..core.strategy import tell
from ..errors import error_boundary
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
    with error_boundary(f"strategy {name}", "a trial"):
        task = problem.task(found.uses_structure, study.registry, found.uses_parts)
        clock = time.perf_counter()
        strategy = found(task, study.budget, rng, study.strategies[name])
        while done[-1] < study.budget and not _enough(times):
            configs = strategy.ask(min(study.batch, study.budget - done[-1]))
            if not len(configs):
                return times[-1]
            asked = time.perf_counter()
            parts = evaluate(problem, configs, with_parts=True).parts if found.uses_parts else None
            told = time.perf_counter()
            tell(strategy, configs, default * rng.lognormal(0.0, 0.1, len(configs)), parts)
            times.append(times[-1] + time.perf_counter() - told + asked - clock)
            clock = time.perf_counter()
            done.append(done[-1] + len(configs))
    late = 2 * (len(times) - 1) // 3
    pace = (times[-1] - times[late]) / (done[-1] - done[late])
    return times[-1] + pace * (study.budget - done[-1])


def _enough(times: list[float]) -> bool:
    return times[-1] > MOST_SECONDS or (times[-1] > ENOUGH_SECONDS and len(times) > LEAST_BATCHES)
