"""A study beside another one: the same strategies on the same problems, at another time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..stats import adjusted, mean_interval
from . import pairs, table, words
from .contest import LEVEL
from .evidence import Evidence
from .record import Record
from .scores import interval, scores
from .table import Table


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


def rows_of(ours: Evidence, theirs: Evidence) -> list[Row]:
    """Return what both studies hold, after equally many evaluations of each problem.

    Raises:
      UserError: a problem of both is not the same in both, or they have nothing in common.
    """
    _check_contents(ours, theirs)
    mine, other = scores(ours.records), scores(theirs.records)
    rows = []
    for problem in sorted(set(mine.at) & set(other.at)):
        at = min(mine.at[problem], other.at[problem])
        here, there = (_speedups(one.used, problem, at) for one in (mine, other))
        rows += [Row(problem, name, at, here[name], there[name]) for name in sorted(set(here) & set(there))]
    if not rows:
        raise UserError(f"studies {ours.name!r} and {theirs.name!r} have no strategy on a problem in common")
    return rows


def _check_contents(ours: Evidence, theirs: Evidence) -> None:
    here, there = (_contents(evidence.records) for evidence in (ours, theirs))
    changed = sorted(name for name in set(here) & set(there) if here[name] != there[name])
    if changed:
        what = "is not the same problem" if len(changed) == 1 else "are not the same problems"
        raise UserError(
            f"studies {ours.name!r} and {theirs.name!r} cannot be compared: {words.listed(changed, 100)} {what} in "
            "both (the fingerprints in run.json differ); run one of them again"
        )


def _contents(records: Sequence[Record]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for record in records:
        found[str(record.head["problem"])].add(str(record.head["fingerprint"]))
    return found


def _speedups(records: Sequence[Record], problem: str, at: int) -> dict[str, NDArray[np.float64]]:
    found: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if record.problem == problem:
            found[record.strategy].append(record.speedup(at))
    return {name: np.array(speedups) for name, speedups in found.items()}


def corrected(rows: Sequence[Row]) -> NDArray[np.float64]:
    """Return the p-value of each row, corrected for their number (Holm); nan for single runs."""
    p = np.array([pairs.rank_sum(row.ours, row.theirs) for row in rows])
    tested = np.isfinite(p)
    p[tested] = adjusted(p[tested])
    return p


def beside(ours: Evidence, theirs: Evidence) -> tuple[list[str], Table]:
    """Return in sentences and in a table how a study differs from another one.

    Raises:
      UserError: see `rows_of`.
    """
    rows = rows_of(ours, theirs)
    p_values = corrected(rows)
    cells = []
    for row, p in zip(rows, p_values, strict=True):
        gap, low, high = pairs.difference(row.ours, row.theirs)
        bounds = "" if np.isnan(low) else f" ({low:.4f} to {high:.4f})"
        sides = [table.speedup(*interval(runs)) for runs in (row.ours, row.theirs)]
        counts = [table.count(row.at), table.number(len(row.ours), f"{len(row.ours)}, {len(row.theirs)}")]
        apart = table.number(gap, "–" if np.isnan(gap) else f"{gap:.4f}{bounds}")
        cells.append([table.text(row.problem), table.text(row.strategy), *counts, *sides, apart, table.p_value(p)])
    columns = [
        "problem",
        "strategy",
        "evaluations",
        "runs",
        f"mean speedup, {ours.name}",
        f"mean speedup, {theirs.name}",
    ]
    note = (
        "Both after equally many evaluations; 95 % intervals, the difference by Welch. Mann-Whitney test over runs, "
        "two-sided, p corrected by Holm's method for all rows. Fingerprints of the problems are equal."
    )
    made = Table("compared", f"{ours.name} beside {theirs.name}", note, [*columns, "difference", "p (Holm)"], cells)
    return list(_sentences(ours, theirs, rows, p_values)), made


def _sentences(ours: Evidence, theirs: Evidence, rows: Sequence[Row], p: NDArray) -> Iterator[str]:
    apart = [f"{row.strategy} on {row.problem}" for row, value in zip(rows, p, strict=True) if value <= LEVEL]
    both = f"Of {words.counted(len(rows), 'strategy')} on a problem that both studies hold, "
    if np.isfinite(p).any():
        yield f"{both}{len(apart)} differ significantly" + (f": {words.listed(apart)}." if apart else ".")
    else:
        yield f"{both}none can be tested, because there are only single runs."
    for strategy in sorted({row.strategy for row in rows}):
        yield from _over_problems(theirs, [row for row in rows if row.strategy == strategy])
    here, there = (_settings(evidence.records) for evidence in (ours, theirs))
    changed = sorted(name for name in set(here) & set(there) if here[name] != there[name])
    if changed:
        yield f"The settings of {words.listed(changed)} differ between the studies, which may make the difference."


def _over_problems(theirs: Evidence, rows: Sequence[Row]) -> Iterator[str]:
    means = np.array([(row.ours.mean(), row.theirs.mean()) for row in rows])
    means = means[((means > 0) & np.isfinite(means)).all(axis=1)]
    if len(means) < 2:
        return
    ratio, low, high = np.exp(mean_interval(np.log(means[:, 0] / means[:, 1])))
    bounds = f"95 % interval {words.percent(low)} to {words.percent(high)}"
    yield (
        f"Over {len(means)} problems, the geometric mean speedup of {rows[0].strategy} is {words.percent(ratio)} "
        f"above that in {theirs.name} ({bounds})."
    )


def _settings(records: Sequence[Record]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for record in records:
        found[record.strategy].add(repr((record.head["options"], record.head["budget"], record.head["batch"])))
    return {name: sorted(settings) for name, settings in found.items()}
