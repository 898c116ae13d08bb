"""What two studies have in common: the same strategies on the same problems, at another time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from . import formatting
from .run_summary import RunSummary
from .scores import scores
from .study_data import StudyData


@dataclass(frozen=True)
class Row:
    """One strategy on one problem, in both studies.

    Attributes:
      at: evaluations after which both are compared.
      ours, theirs: `(runs,)` speedups.
    """

    problem: str
    strategy: str
    at: int
    ours: NDArray[np.float64]
    theirs: NDArray[np.float64]


def rows_of(ours: StudyData, theirs: StudyData) -> list[Row]:
    """Return what both studies hold, after equally many evaluations of each problem.

    Raises:
      UserError: a problem of both is not the same in both, or they have nothing in common.
    """
    _check_contents(ours, theirs)
    mine, other = scores(ours.records), scores(theirs.records)
    rows = []
    for problem in sorted(set(mine.cutoffs) & set(other.cutoffs)):
        at = min(mine.cutoffs[problem], other.cutoffs[problem])
        here, there = (_speedups(one.used, problem, at) for one in (mine, other))
        rows += [Row(problem, name, at, here[name], there[name]) for name in sorted(set(here) & set(there))]
    if not rows:
        raise UserError(f"studies {ours.name!r} and {theirs.name!r} have no strategy on a problem in common")
    return rows


def _check_contents(ours: StudyData, theirs: StudyData) -> None:
    here, there = (_contents(study.records) for study in (ours, theirs))
    changed = sorted(name for name in set(here) & set(there) if here[name] != there[name])
    if changed:
        what = "is not the same problem" if len(changed) == 1 else "are not the same problems"
        raise UserError(
            f"studies {ours.name!r} and {theirs.name!r} cannot be compared: {formatting.listed(changed, 100)} {what} "
            "in both (the fingerprints in run.json differ); run one of them again"
        )


def _contents(records: Sequence[RunSummary]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for record in records:
        found[str(record.head["problem"])].add(str(record.head["fingerprint"]))
    return found


def _speedups(records: Sequence[RunSummary], problem: str, at: int) -> dict[str, NDArray[np.float64]]:
    found: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if record.problem == problem:
            found[record.strategy].append(record.speedup(at))
    return {name: np.array(speedups) for name, speedups in found.items()}
