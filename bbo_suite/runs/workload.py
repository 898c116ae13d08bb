"""How much work a plan is, before any of it is done."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from ..store.folders import has_ended
from .study_plan import PlannedRun, StudyPlan

ROW_BYTES = 80
"""A stored evaluation without its candidate; improvements, which keep theirs, are too few to count."""


def workload(study: StudyPlan, plan: Sequence[PlannedRun]) -> Iterator[dict[str, Any]]:
    """Return for each strategy on each problem: runs, how many are done, parameters, evaluations, bytes to store."""
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
