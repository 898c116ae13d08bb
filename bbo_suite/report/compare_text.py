"""A study beside another one, in sentences and in a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..stats import difference_interval, holm, mean_interval, rank_sum_p, signed_rank_p, smallest_rank_sum_p
from . import formatting, table
from .compare import Row, rows_of
from .leaderboard import LEVEL
from .run_summary import RunSummary
from .scores import interval
from .study_data import StudyData
from .table import Table


def p_values_of(rows: Sequence[Row]) -> NDArray[np.float64]:
    """Return the p-value of each row, corrected for their number (Holm); nan for single runs."""
    p = np.array([rank_sum_p(row.ours, row.theirs) for row in rows])
    tested = np.isfinite(p)
    p[tested] = holm(p[tested])
    return p


def compare(ours: StudyData, theirs: StudyData) -> tuple[list[str], Table]:
    """Return in sentences and in a table how a study differs from another one.

    Raises:
      UserError: see `rows_of`.
    """
    rows = rows_of(ours, theirs)
    p_values = p_values_of(rows)
    cells = []
    for row, p in zip(rows, p_values, strict=True):
        gap, low, high = difference_interval(row.ours, row.theirs)
        bounds = "" if np.isnan(low) else f" ({formatting.decimals(low)} to {formatting.decimals(high)})"
        sides = [table.speedup(*interval(runs)) for runs in (row.ours, row.theirs)]
        counts = [table.count(row.at), table.number(len(row.ours), f"{len(row.ours)}, {len(row.theirs)}")]
        apart = table.number(gap, "–" if np.isnan(gap) else f"{formatting.decimals(gap)}{bounds}")
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


def _sentences(ours: StudyData, theirs: StudyData, rows: Sequence[Row], p: NDArray[np.float64]) -> Iterator[str]:
    yield _row_by_row(rows, p)
    yield from _over_problems(ours, theirs, rows)
    here, there = (_settings(study.records) for study in (ours, theirs))
    changed = sorted(name for name in set(here) & set(there) if here[name] != there[name])
    if changed:
        yield f"The settings of {formatting.listed(changed)} differ between the studies, which may make the difference."


def _row_by_row(rows: Sequence[Row], p: NDArray[np.float64]) -> str:
    both = f"Both studies hold {formatting.counted(len(rows), 'pair')} of a problem and a strategy: "
    apart = [f"{row.strategy} on {row.problem}" for row, value in zip(rows, p, strict=True) if value <= LEVEL]
    tested = [
        smallest_rank_sum_p(len(row.ours), len(row.theirs)) for row in rows if min(len(row.ours), len(row.theirs)) > 1
    ]
    if not tested:
        return f"{both}none can be tested, because there are only single runs."
    if min(tested) * len(tested) > LEVEL:
        return f"{both}too many for so few repeats, so that no difference of one pair can be significant."
    return f"{both}{formatting.listed(apart)} {'differs' if len(apart) == 1 else 'differ'} significantly."


def _over_problems(ours: StudyData, theirs: StudyData, rows: Sequence[Row]) -> Iterator[str]:
    """Yield how each strategy differs over problems, tested by Wilcoxon and corrected for the number of strategies."""
    means: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        pair = float(row.ours.mean()), float(row.theirs.mean())
        if min(pair) > 0 and np.isfinite(pair).all():
            means[row.strategy].append(pair)
    several = {name: np.array(found) for name, found in means.items() if len(found) > 1}
    corrected = holm([signed_rank_p(*found.T) for found in several.values()])
    for (name, found), p in zip(several.items(), corrected, strict=True):
        ratio, low, high = np.exp(mean_interval(np.log(found[:, 0] / found[:, 1])))
        bounds = f"95 % interval {formatting.percent(low)} to {formatting.percent(high)}; {formatting.p_equals(p)}"
        change = f"{formatting.percent(ratio)} in {ours.name} against {theirs.name} ({bounds})"
        yield f"{name}, geometric mean speedup over {len(found)} problems: {change}."


def _settings(records: Sequence[RunSummary]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for record in records:
        found[record.strategy].add(repr((record.head["options"], record.head["budget"], record.head["batch"])))
    return {name: sorted(settings) for name, settings in found.items()}
