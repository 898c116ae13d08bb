"""How many candidates were evaluated, how many failed and why, and how many seconds that took."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from ..store.results import RunResult
from . import formatting, table
from .per_problem import marked
from .scores import Scores
from .table import Cell, Table


def spending(scores: Scores) -> Table:
    """Return candidates and seconds, one row per problem and strategy."""
    rows = []
    for problem in scores.cutoffs:
        for strategy, runs in scores.started(problem).items():
            rows.append([table.text(problem), marked(scores, strategy), *_spent(runs)])
    columns = ["problem", "strategy", "runs", "candidates", "unique", "failed", "strategy s", "evaluation s"]
    return Table("spending", "Candidates and seconds", _SPENDING, [*columns, "strategy ms per candidate"], rows)


_SPENDING = """Candidates of all runs together. Unique: the share of different candidates within a run; a dash: an
imported run does not tell. Seconds are means over runs: of the strategy (to propose and to learn) and of the
evaluations."""


def _spent(runs: Sequence[RunResult]) -> Iterator[Cell]:
    total = sum(run.evaluations for run in runs)
    yield table.count(len(runs))
    yield table.count(total)
    yield _part(sum(run.unique for run in runs), total)
    yield _part(sum(run.failures.total() for run in runs), total)
    own = sum(run.strategy_seconds for run in runs)
    for seconds in (
        own / len(runs),
        sum(run.evaluation_seconds for run in runs) / len(runs),
        1000 * own / total,
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
    note = "A failed candidate has an infinite cost and counts as an evaluation."
    return Table("failures", "Failed candidates", note, ["problem", "strategy", "status", "candidates", "of all"], rows)


def reasons(scores: Scores, most: int = 20) -> Table:
    """Return the most frequent reasons that problems gave for failures."""
    counts: Counter[tuple[str, str]] = Counter()
    for run in scores.runs:
        counts.update({(run.problem, reason): number for reason, number in run.reasons.items()})
    rows = [[table.text(problem), table.count(n), table.text(why)] for (problem, why), n in counts.most_common(most)]
    note = f"The {most} most frequent of {len(counts):,}." if len(counts) > most else ""
    return Table("reasons", "Reasons of failures", note, ["problem", "candidates", "reason"], rows)
