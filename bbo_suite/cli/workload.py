"""The amount of work in a plan, before anything is run, from stored runs or short trials of which nothing is stored."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import default_value, evaluate
from ..core.level import LEVEL, Level
from ..core.problem import Evaluations, Problem, set_fact
from ..loop import search
from ..runs.loop import MEASUREMENTS
from ..runs.study_plan import PlannedRun, StudyPlan
from ..store.folders import has_ended
from ..store.identity import NOISY
from .run_view import RunView

ROW_BYTES = 80
"""Size of a stored evaluation without its candidate. Improvements store theirs, but are few and neglected."""
ENOUGH_SECONDS, MOST_SECONDS, LEAST_BATCHES = 0.5, 15.0, 18
"""A trial of a strategy ends after the first time and this many batches, because models are fitted and code is compiled
in the first ones; it ends after the second time in any case."""


def workload(study: StudyPlan, plan: Sequence[PlannedRun]) -> Iterator[dict[str, Any]]:
    """Yield for each strategy on each problem: its level, runs, runs done, parameters, evaluations, bytes, seconds.

    The seconds are those that are left, one run after another. They are an estimate: of stored runs, their own pace is
    taken; otherwise problems and strategies are tried for about a second each.
    """
    trials = _Trials(study)
    for (problem_id, strategy), group in itertools.groupby(plan, key=lambda p: (p.run.problem, p.run.strategy)):
        runs = list(group)
        row = ROW_BYTES + (_candidate_bytes(study, problem_id) if study.keep_all else 0)
        yield {
            "problem": problem_id,
            "strategy": strategy,
            LEVEL: runs[0].facts[LEVEL],
            "runs": len(runs),
            "done": sum(has_ended(run.path) for run in runs),
            "parameters": runs[0].facts["parameters"],
            "evaluations": len(runs) * study.budget,
            "bytes": len(runs) * study.budget * row,
            "seconds": _seconds_left(study, runs, trials),
        }


def _candidate_bytes(study: StudyPlan, problem_id: str) -> int:
    problem = study.registry.problem(problem_id)
    return len(problem.space.pack(problem.default_row()))


class _Trials:
    """Seconds per evaluation in trials: each strategy is tried on the first problem that needs it."""

    def __init__(self, study: StudyPlan) -> None:
        self._study = study
        self._evaluation: dict[str, float] = {}
        self._strategy: dict[str, float] = {}

    def pace(self, run: PlannedRun) -> float:
        """Return the pace of a run, the strategy's share included."""
        problem, name = self._study.registry.problem(run.run.problem), run.run.strategy
        if run.run.problem not in self._evaluation:
            self._evaluation[run.run.problem] = evaluation_pace(problem, self._study.workers)
        if name not in self._strategy:
            self._strategy[name] = strategy_seconds(self._study, problem, name) / self._study.budget
        return self._evaluation[run.run.problem] + self._strategy[name]


def _seconds_left(study: StudyPlan, runs: Sequence[PlannedRun], trials: _Trials) -> float:
    """Return the seconds that runs of one strategy on one problem will take, one after another."""
    views = [RunView(run.path, run.name, study.budget) for run in runs]
    for view in views:
        view.refresh()
    left = [view for view in views if not view.ended]
    if not left:
        return 0.0
    known = [view.pace for view in views if view.pace]
    pace = sum(known) / len(known) if known else trials.pace(runs[0])
    limit = study.max_seconds or float("inf")
    again = MEASUREMENTS * pace if runs[0].facts.get(NOISY) else 0.0
    return sum(min(limit, pace * (view.budget - view.evaluations)) + again for view in left)


def evaluation_pace(problem: Problem, workers: int) -> float:
    """Return the seconds that a random candidate takes, all workers together."""
    rng, count = np.random.default_rng(0), max(1, workers)
    set_fact(problem, "workers", workers)
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
