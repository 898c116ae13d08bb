"""Two studies compared: the same strategies on the same problems, at another time or with other settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..stats import holm, mean_interval, rank_sum_p_values, signed_rank_p
from ..store.results import RunResult
from . import formatting
from .scores import scores
from .study_data import StudyData


@dataclass(frozen=True)
class Row:
    """One strategy on one problem, in both studies.

    Attributes:
      cutoff: evaluations after which both are compared.
      ours, theirs: `(runs,)` speedups.
    """

    problem: str
    strategy: str
    cutoff: int
    ours: NDArray[np.float64]
    theirs: NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """One strategy over the problems of both studies.

    Attributes:
      problems: their number.
      ratio, low, high: geometric mean of our mean speedup over theirs, and its 95 % interval.
      p: Wilcoxon signed-rank over problems, corrected for the number of strategies (Holm).
    """

    strategy: str
    problems: int
    ratio: float
    low: float
    high: float
    p: float


def rows_of(ours: StudyData, theirs: StudyData) -> list[Row]:
    """Return what both studies contain, after equally many evaluations of each problem.

    Raises:
      UserError: a problem differs between the studies, or they have nothing in common.
    """
    _check_contents(ours, theirs)
    mine, other = scores(ours.runs), scores(theirs.runs)
    rows = []
    for problem in sorted(set(mine.cutoffs) & set(other.cutoffs)):
        cutoff = min(mine.cutoffs[problem], other.cutoffs[problem])
        both = [[run for run in one.compared if run.problem == problem] for one in (mine, other)]
        again = all(run.remeasured(cutoff) is not None for runs in both for run in runs)
        here, there = (_speedups(runs, cutoff, again) for runs in both)
        rows += [Row(problem, name, cutoff, here[name], there[name]) for name in sorted(set(here) & set(there))]
    if not rows:
        raise UserError(f"studies {ours.name!r} and {theirs.name!r} have no strategy on a problem in common")
    return rows


def _check_contents(ours: StudyData, theirs: StudyData) -> None:
    here, there = (_contents(study.runs) for study in (ours, theirs))
    changed = sorted(name for name in set(here) & set(there) if here[name] != there[name])
    if changed:
        what = "is not the same problem" if len(changed) == 1 else "are not the same problems"
        raise UserError(
            f"studies {ours.name!r} and {theirs.name!r} cannot be compared: {formatting.listed(changed, 100)} {what} "
            "in both (the fingerprints in run.json differ); run one of them again"
        )


def _contents(runs: Sequence[RunResult]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        found[str(run.head["problem"])].add(str(run.head["fingerprint"]))
    return found


def _speedups(runs: Sequence[RunResult], cutoff: int, again: bool) -> dict[str, NDArray[np.float64]]:
    found: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        remeasured = run.remeasured(cutoff) if again else None
        found[run.strategy].append(run.speedup(cutoff) if remeasured is None else remeasured)
    return {name: np.array(speedups) for name, speedups in found.items()}


def p_values(rows: Sequence[Row]) -> NDArray[np.float64]:
    """Return the p-value of each row (Mann-Whitney over runs), corrected for their number; nan for single runs."""
    p = rank_sum_p_values([(row.ours, row.theirs) for row in rows])
    tested = np.isfinite(p)
    p[tested] = holm(p[tested])
    return p


def changes(rows: Sequence[Row]) -> list[Change]:
    """Return how each strategy with two or more problems in both studies changed."""
    means: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        pair = float(row.ours.mean()), float(row.theirs.mean())
        if min(pair) > 0 and np.isfinite(pair).all():
            means[row.strategy].append(pair)
    several = {name: np.array(found) for name, found in means.items() if len(found) > 1}
    corrected = holm([signed_rank_p(*found.T) for found in several.values()])
    return [_change(name, found, float(p)) for (name, found), p in zip(several.items(), corrected, strict=True)]


def _change(name: str, means: NDArray[np.float64], p: float) -> Change:
    ratio, low, high = np.exp(mean_interval(np.log(means[:, 0] / means[:, 1]))).tolist()
    return Change(name, len(means), ratio, low, high, p)


def changed_settings(ours: StudyData, theirs: StudyData) -> list[str]:
    """Return the strategies of both studies whose options, budget or batch size differ."""
    here, there = (_settings(study.runs) for study in (ours, theirs))
    return sorted(name for name in set(here) & set(there) if here[name] != there[name])


def _settings(runs: Sequence[RunResult]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        found[run.strategy].add(repr((run.head["options"], run.head["budget"], run.head["batch"])))
    return found
