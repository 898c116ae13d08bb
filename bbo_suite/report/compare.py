"""Two studies compared: the same strategies on the same problems, at another time or with other settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..scores import ALPHA, corrected_p, scores
from ..stats import (
    difference_interval,
    holm,
    mean_interval,
    rank_sum_p_values,
    resampled_interval,
    signed_rank_p,
    smallest_rank_sum_p,
)
from ..store.results import RunResult
from . import formatting, table
from .study_data import StudyData
from .table import Cell, Table


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
    return corrected_p(rank_sum_p_values([(row.ours, row.theirs) for row in rows]))


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


def comparison(ours: StudyData, theirs: StudyData) -> tuple[list[str], Table]:
    """Return in sentences and in a table how a study differs from another one.

    Raises:
      UserError: see `rows_of`.
    """
    rows = rows_of(ours, theirs)
    p = p_values(rows)
    means = [f"mean speedup, {study.name}" for study in (ours, theirs)]
    columns = ["problem", "strategy", "evaluations", "runs", *means, "difference", "p (Holm)"]
    cells = [_cells(row, value) for row, value in zip(rows, p, strict=True)]
    made = Table("compared", f"{ours.name} compared with {theirs.name}", _NOTE, columns, cells)
    return list(_sentences(ours, theirs, rows, p)), made


_NOTE = """Both after equally many evaluations, with 95 % intervals (of the difference: Welch). Two-sided Mann-Whitney
test over runs; p is corrected for all rows (Holm). The problems have equal fingerprints."""


def _cells(row: Row, p: float) -> list[Cell]:
    gap, low, high = difference_interval(row.ours, row.theirs)
    bounds = "" if np.isnan(low) else f" ({formatting.decimals(low)} to {formatting.decimals(high)})"
    difference = table.number(gap, "–" if np.isnan(gap) else f"{formatting.decimals(gap)}{bounds}")
    counts = [table.count(row.cutoff), table.number(len(row.ours), f"{len(row.ours)}, {len(row.theirs)}")]
    means = [table.speedup(*resampled_interval(runs)) for runs in (row.ours, row.theirs)]
    return [table.text(row.problem), table.text(row.strategy), *counts, *means, difference, table.p_value(p)]


def _sentences(ours: StudyData, theirs: StudyData, rows: Sequence[Row], p: NDArray[np.float64]) -> Iterator[str]:
    yield _row_by_row(rows, p)
    for change in changes(rows):
        bounds = f"95 % interval {formatting.percent(change.low)} to {formatting.percent(change.high)}"
        difference = f"changes by {formatting.percent(change.ratio)} ({bounds}; {formatting.p_equals(change.p)})"
        over = f"the geometric mean speedup of {change.strategy} over {change.problems} problems"
        yield f"From {theirs.name} to {ours.name}, {over} {difference}."
    if changed := changed_settings(ours, theirs):
        yield f"The settings of {formatting.listed(changed)} differ, which may explain differences."


def _row_by_row(rows: Sequence[Row], p: NDArray[np.float64]) -> str:
    both = f"Both studies contain {formatting.counted(len(rows), 'combination')} of problem and strategy: "
    apart = [f"{row.strategy} on {row.problem}" for row, value in zip(rows, p, strict=True) if value <= ALPHA]
    counts = [(len(row.ours), len(row.theirs)) for row in rows]
    smallest = [smallest_rank_sum_p(*pair) for pair in counts if min(pair) > 1]
    if not smallest:
        return f"{both}none can be tested, because there are only single runs."
    if min(smallest) * len(smallest) > ALPHA:
        return f"{both}with so few repeats, no difference of a single combination can be significant."
    return f"{both}{formatting.listed(apart)} {'differs' if len(apart) == 1 else 'differ'} significantly."
