"""The amount of work in a plan, before anything is run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from ..store.folders import has_ended
from .study_plan import PlannedRun, StudyPlan

ROW_BYTES = 80
"""Size of a stored evaluation without its candidate. Improvements store theirs, but are few and neglected."""


def workload(study: StudyPlan, plan: Sequence[PlannedRun]) -> Iterator[dict[str, Any]]:
    """Yield for each strategy on each problem: runs, runs done, parameters, evaluations, and bytes to store."""
    for (problem_id, strategy), group in itertools.groupby(plan, key=lambda p: (p.run.problem, p.run.strategy)):
        problem, runs = study.registry.problem(problem_id), list(group)
        row = ROW_BYTES + (len(problem.space.pack(problem.default_row())) if study.keep_all else 0)
        yield {
            "problem": problem_id,
            "strategy": strategy,
            "runs": len(runs),
            "done": sum(has_ended(run.path) for run in runs),
            "parameters": len(problem.space),
            "evaluations": len(runs) * study.budget,
            "bytes": len(runs) * study.budget * row,
        }
