"""The amount of work in a plan, before anything is run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.level import LEVEL
from ..store.folders import has_ended
from ..store.identity import NOISY
from ..store.run_view import RunView
from .finalists import MEASUREMENTS
from .study_plan import PlannedRun, StudyPlan
from .trial import evaluation_pace, strategy_seconds

ROW_BYTES = 80
"""Size of a stored evaluation without its candidate. Improvements store theirs, but are few and neglected."""


def workload(study: StudyPlan, plan: Sequence[PlannedRun]) -> Iterator[dict[str, Any]]:
    """Yield for each strategy on each problem: its knowledge, runs, runs done, parameters, evaluations, bytes, seconds.

    The seconds are those that are left, one run after another. They are an estimate: of stored runs, their own pace is
    taken; otherwise problems and strategies are tried for about a second each.
    """
    paces = _Paces(study)
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
            "seconds": paces.seconds_left(runs),
        }


def _candidate_bytes(study: StudyPlan, problem_id: str) -> int:
    problem = study.registry.problem(problem_id)
    return len(problem.space.pack(problem.default_row()))


class _Paces:
    """Seconds per evaluation, from stored runs or else from trials."""

    def __init__(self, study: StudyPlan) -> None:
        self._study = study
        self._evaluation: dict[str, float] = {}
        self._strategy: dict[str, float] = {}

    def seconds_left(self, runs: Sequence[PlannedRun]) -> float:
        """Return the seconds that runs of one strategy on one problem will take, one after another."""
        views = [RunView(run.path, run.name, self._study.budget) for run in runs]
        for view in views:
            view.refresh()
        left = [view for view in views if not view.ended]
        if not left:
            return 0.0
        known = [view.pace for view in views if view.pace]
        pace = sum(known) / len(known) if known else self._tried(runs[0])
        limit = self._study.max_seconds or float("inf")
        again = MEASUREMENTS * pace if runs[0].facts.get(NOISY) else 0.0
        return sum(min(limit, pace * (view.budget - view.evaluations)) + again for view in left)

    def _tried(self, run: PlannedRun) -> float:
        """Return the pace of a run in trials: each strategy is tried on the first problem that needs it."""
        problem, name = self._study.registry.problem(run.run.problem), run.run.strategy
        if run.run.problem not in self._evaluation:
            self._evaluation[run.run.problem] = evaluation_pace(problem, self._study.workers)
        if name not in self._strategy:
            self._strategy[name] = strategy_seconds(self._study, problem, name) / self._study.budget
        return self._evaluation[run.run.problem] + self._strategy[name]
