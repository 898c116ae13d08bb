"""What failed, and why."""

from __future__ import annotations

from collections import Counter

from . import table, words
from .results import marked
from .scores import Scores
from .table import Table


def failures(scores: Scores) -> Table:
    """Return how many candidates failed, by problem, strategy and status."""
    rows = []
    for problem in scores.at:
        for strategy, runs in scores.started(problem).items():
            total = sum(run.evaluations for run in runs)
            counts = sum((run.failures for run in runs), Counter[str]())
            for status, number in sorted(counts.items()):
                named = [table.text(problem), marked(scores, strategy), table.text(status.replace("_", " "))]
                share = table.number(number / total, words.share(number / total))
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
