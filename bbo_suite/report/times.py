"""When targets are reached, and what a run costs in candidates and seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ..stats import expected_running_time, first_hits
from . import table, words
from .record import Record
from .results import marked
from .scores import Scores
from .table import Cell, Table

SHARES = (0.5, 0.9, 0.99)
"""Targets, as parts of the largest gain that any run found."""


def hits(records: Sequence[Record], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the `(runs, targets)` evaluations at which each run first costs no more than each target; else inf."""
    found = np.full((len(records), len(targets)), np.inf)
    for row, record in zip(found, records, strict=True):
        if len(record.costs):
            places = first_hits(record.costs[None], targets)[0]
            reached = np.isfinite(places)
            row[reached] = record.steps[places[reached].astype(int) - 1]
    return found


def running_times(scores: Scores) -> Table:
    """Return the expected running time to each target, a row a problem and strategy."""
    rows = []
    for problem in scores.at:
        best = max(record.speedup(record.evaluations) for record in _started(scores, problem))
        if not (1 < best < np.inf):
            continue
        for strategy, runs in _by_strategy(_started(scores, problem)):
            targets = float(runs[0].head["default"]) / (1 + np.array(SHARES) * (best - 1))
            cells = _running_times(runs, targets)
            rows.append([table.text(problem), marked(scores, strategy), table.speedup(best), *cells])
    columns = ["problem", "strategy", "best speedup of any run", *(f"{100 * share:.0f} % of its gain" for share in SHARES)]
    note = (
        "Expected running time (ERT): evaluations to reach the target if an unlucky run is started again, that is all "
        "evaluations before the target over the runs that reached it; in brackets how many of the runs did. Fewer is better; "
        "a dash: none reached it. The target is a part of the largest gain over the default that any run of this study found. "
        "Problems on which no run beats the default are left out."
    )
    return Table("times", "Evaluations to reach a target", note, columns, rows)


def _running_times(runs: Sequence[Record], targets: NDArray[np.float64]) -> Iterator[Cell]:
    reached = hits(runs, targets)
    expected = expected_running_time(reached, [run.evaluations for run in runs])
    for time, number in zip(expected, np.isfinite(reached).sum(axis=0), strict=True):
        text = f"{time:,.0f} ({number}/{len(runs)})" if np.isfinite(time) else f"– (0/{len(runs)})"
        yield table.number(time, text)


def _started(scores: Scores, problem: str) -> list[Record]:
    return [record for record in scores.records if record.problem == problem and record.evaluations]


def _by_strategy(records: Sequence[Record]) -> Iterator[tuple[str, list[Record]]]:
    for strategy, runs in groupby(sorted(records, key=lambda r: r.strategy), key=lambda r: r.strategy):
        yield strategy, list(runs)


def spending(scores: Scores) -> Table:
    """Return candidates and seconds of a run in the mean, a row a problem and strategy."""
    rows = []
    for problem in scores.at:
        for strategy, runs in _by_strategy(_started(scores, problem)):
            total, unique = sum(run.evaluations for run in runs), sum(run.unique for run in runs)
            failed = sum(sum(run.failures.values()) for run in runs)
            own, evaluating = (
                float(np.mean([getattr(run, f"{what}_seconds") for run in runs])) for what in ("strategy", "evaluation")
            )
            counts = [table.count(len(runs)), table.count(total), _part(unique, total), _part(failed, total)]
            times = [table.number(value, words.seconds(value)) for value in (own, evaluating)]
            each = 1000 * own * len(runs) / total
            rows.append([table.text(problem), marked(scores, strategy), *counts, *times, table.number(each, words.seconds(each))])
    columns = ["problem", "strategy", "runs", "evaluations in all", "unique", "failed", "strategy s a run", "evaluation s a run"]
    note = (
        "Unique: how many of all candidates differed, within each run. Seconds are the mean of a run: what the strategy "
        "took to propose and to learn, and what the evaluations took."
    )
    return Table("spending", "Candidates and seconds", note, [*columns, "strategy ms a candidate"], rows)


def _part(some: int, total: int) -> Cell:
    share = some / total
    text = "none" if some == 0 else "all" if some == total else f"{100 * share:.1f} %"
    return table.number(share, text)


def failures(scores: Scores) -> Table:
    """Return what failed, by problem, strategy and status, with the most frequent reasons."""
    rows = []
    for problem in scores.at:
        for strategy, runs in _by_strategy(_started(scores, problem)):
            total = sum(run.evaluations for run in runs)
            statuses = sorted({status for run in runs for status in run.failures})
            for status in statuses:
                number = sum(run.failures[status] for run in runs)
                share = table.number(number / total, f"{100 * number / total:.2g} %")
                named = [table.text(problem), marked(scores, strategy), table.text(status.replace("_", " "))]
                rows.append([*named, table.count(number), share])
    columns = ["problem", "strategy", "status", "candidates", "of all"]
    return Table("failures", "What failed", "Candidates that failed cost inf and stay in the record.", columns, rows)


def reasons(scores: Scores, most: int = 20) -> Table:
    """Return the most frequent reasons for failures."""
    counts: dict[tuple[str, str], int] = {}
    for record in scores.records:
        for reason, number in record.reasons.items():
            counts[record.problem, reason] = counts.get((record.problem, reason), 0) + number
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = [[table.text(problem), table.count(number), table.text(reason)] for (problem, reason), number in top[:most]]
    note = f"The {most} most frequent of {len(top):,}." if len(top) > most else ""
    return Table("reasons", "Reasons given for failures", note, ["problem", "candidates", "reason"], rows)
