"""The comparison of two studies in sentences and in a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..stats import difference_interval, smallest_rank_sum_p
from . import formatting, table
from .compare import Row, changed_settings, changes, p_values, rows_of
from .pairs import LEVEL
from .scores import interval
from .study_data import StudyData
from .table import Cell, Table


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
    means = [table.speedup(*interval(runs)) for runs in (row.ours, row.theirs)]
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
    apart = [f"{row.strategy} on {row.problem}" for row, value in zip(rows, p, strict=True) if value <= LEVEL]
    counts = [(len(row.ours), len(row.theirs)) for row in rows]
    smallest = [smallest_rank_sum_p(*pair) for pair in counts if min(pair) > 1]
    if not smallest:
        return f"{both}none can be tested, because there are only single runs."
    if min(smallest) * len(smallest) > LEVEL:
        return f"{both}with so few repeats, no difference of a single combination can be significant."
    return f"{both}{formatting.listed(apart)} {'differs' if len(apart) == 1 else 'differ'} significantly."
