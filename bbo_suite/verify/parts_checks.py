"""The stored parts of a run: can they be read, do they make up the stored costs, and are they the same now?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..core.level import Level
from ..core.problem import Problem
from ..errors import UserError, error_boundary
from ..parts.parts import wrong_sums
from ..store.folders import PARTS
from ..store.parts_log import PartsLog, Told, by_candidate
from ..store.rows import Row
from ..store.stored_run import StoredRun

_BATCH = 100
"""Evaluations whose parts are in memory at a time."""


def has_parts(run: StoredRun, problem: Problem | None) -> bool:
    """Return whether a run was told costs of parts, so that it must have a log of them.

    Args:
      problem: None if it is not available: then the log itself tells.
    """
    told = problem.tells_parts if problem else (run.path / PARTS).exists()
    return Level.of(run.head) is Level.PARTS and told and not run.source


def check_parts(run: StoredRun, problem: Problem | None) -> list[str]:
    """Return a sentence if the log of parts is damaged or incomplete, or if some parts do not make up their cost.

    Args:
      problem: says how costs follow from parts; None if it is not available.
    """
    if not has_parts(run, problem):
        return []
    try:
        return list(_first_wrong(run, problem))
    except UserError as error:
        return [str(error)]


def _first_wrong(run: StoredRun, problem: Problem | None) -> Iterator[str]:
    log = PartsLog(run.path)
    for start in range(0, len(run.rows), _BATCH):
        rows = run.rows[start : start + _BATCH]
        parts = log.replay(start + 1, len(rows))
        if problem is None:
            continue
        with error_boundary(f"problem {problem.id}", "combine"):
            combined = np.asarray(problem.combine(parts))
        for i in wrong_sums(combined, np.array([row.value for row in rows]))[:1]:
            total, row = float(combined[i]), rows[i]
            yield f"the parts of evaluation {row.evaluation} make {total!r}, but it cost {row.value!r}"
            return


def stored_parts(run: StoredRun, problem: Problem, count: int) -> Sequence[Told]:
    """Return the parts of the first `count` evaluations; none if the run was told none, or if they are damaged."""
    if check_parts(run, problem) or not has_parts(run, problem):
        return []
    return list(by_candidate(PartsLog(run.path).replay(1, count)))


def changed_part(row: Row, stored: Told, now: Told) -> str:
    """Return how the parts of an evaluation differ now; empty if they do not."""
    for key in sorted(stored.keys() | now.keys()):
        if stored.get(key) != now.get(key):
            words = (_part(stored, key), _part(now, key))
            return f"part {key:016x} of evaluation {row.evaluation} was {words[0]} and is {words[1]} now"
    return ""


def _part(parts: Told, key: int) -> str:
    if key not in parts:
        return "absent"
    count, cost = parts[key]
    return f"{cost!r}, {count:g} times"
