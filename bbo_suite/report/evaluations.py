"""How many candidates were evaluated, how many failed and why, and how many seconds that took."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from . import formatting, table
from .per_problem import marked
from .run_summary import RunSummary
from .scores import Scores
from .table import Cell, Table


def spending(scores: Scores) -> Table:
    """Return candidates and seconds, a row a problem and strategy."""
    rows = []
    for problem in scores.cutoffs:
        for strategy, runs in scores.started(problem).items():
            rows.append([table.text(problem), marked(scores, strategy), *_spent(runs)])
    columns = ["problem", "strategy", "runs", "candidates", "unique", "failed", "strategy s", "evaluation s"]
    return Table("spending", "Candidates and seconds", _SPENDING, [*columns, "strategy ms a candidate"], rows)


_SPENDING = """Candidates of all runs together. Unique: how many of them differed, each run by itself; a dash: an
imported run does not tell. Seconds are the mean of a run: what the strategy took to propose and to learn, and what the
evaluations took. * sees the structure."""


def _spent(runs: Sequence[RunSummary]) -> Iterator[Cell]:
    total = sum(run.evaluations for run in runs)
    yield table.count(len(runs))
    yield table.count(total)
    yield _part(sum(run.unique for run in runs), total)
    yield _part(sum(run.failures.total() for run in runs), total)
    thinking = sum(run.strategy_seconds for run in runs)
    for seconds in (
        thinking / len(runs),
        sum(run.evaluation_seconds for run in runs) / len(runs),
        1000 * thinking / total,
    ):
        yield table.number(seconds, formatting.seconds(seconds))


def _part(some: float, total: int) -> Cell:
    share = some / total
    if math.isnan(share):
        return table.number(share, "–")
    return table.number(share, formatting.share(share))


def failures(scores: Scores) -> Table:
    """Return how many candidates failed, by problem, strategy and status."""
    rows = []
    for problem in scores.cutoffs:
        for strategy, runs in scores.started(problem).items():
            total = sum(run.evaluations for run in runs)
            counts = sum((run.failures for run in runs), Counter[str]())
            for status, number in sorted(counts.items()):
                named = [table.text(problem), marked(scores, strategy), table.text(status.replace("_", " "))]
                share = table.number(number / total, formatting.share(number / total))
                rows.append([*named, table.count(number), share])
    note = "A candidate that fails costs inf and stays in the record. * sees the structure."
    return Table("failures", "What failed", note, ["problem", "strategy", "status", "candidates", "of all"], rows)


def reasons(scores: Scores, most: int = 20) -> Table:
    """Return the most frequent reasons that problems gave for failures."""
    counts: Counter[tuple[str, str]] = Counter()
    for record in scores.records:
        counts.update({(record.problem, reason): number for reason, number in record.reasons.items()})
    rows = [[table.text(problem), table.count(n), table.text(why)] for (problem, why), n in counts.most_common(most)]
    note = f"The {most} most frequent of {len(counts):,}." if len(counts) > most else ""
    return Table("reasons", "Reasons given for failures", note, ["problem", "candidates", "reason"], rows)
