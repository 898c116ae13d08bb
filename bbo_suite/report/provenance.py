"""Where the numbers come from: candidates, seconds, failures, settings, problems, versions and machines."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.level import Level
from ..scores import Scores
from ..store.results import RunResult
from . import formatting, table
from .limits import Limit
from .table import Cell, Table, marked


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


def settings(runs: Sequence[RunResult]) -> Table:
    """Return every strategy's options, budget and batch size."""
    rows = []
    for strategy in sorted({run.strategy for run in runs}):
        own = [run for run in runs if run.strategy == strategy]
        options = own[0].head["options"]
        shown = ", ".join(f"{name} = {_text(value)}" for name, value in options.items()) if options else "none"
        shown = "not recorded" if options is None else shown
        sizes = [_span([run.head[name] for run in own]) for name in ("budget", "batch")]
        rows.append(
            [
                table.text(strategy),
                table.text(Level.of(own[0].head).sees),
                *map(table.text, sizes),
                table.text(shown),
            ]
        )
    columns = ["strategy", "sees", "budget", "batch", "options"]
    note = "As stored with the runs; a strategy with several settings is shown as several strategies."
    return Table("settings", "Settings of the strategies", note, columns, rows)


def _span(sizes: Sequence[int | None]) -> str:
    known = [int(size) for size in sizes if size is not None]
    return formatting.span(known) if known else "not recorded"


def _text(value: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    return value if value and isinstance(value, str) else json.dumps(value)


def problems(runs: Sequence[RunResult]) -> Table:
    """Return every problem with the cost of its default, its optimum and its fingerprint."""
    rows = []
    for problem in sorted({run.problem for run in runs}):
        own = [run for run in runs if run.problem == problem]
        head = own[0].head
        optimum = head.get("optimum")
        default = table.number(float(head["default"]), f"{head['default']:.6g} {head['unit']}")
        best = table.text("unknown" if optimum is None else f"{optimum:.6g}")
        strategies = {run.strategy for run in own}
        counts = [table.count(len(strategies)), table.count(len(own))]
        rows.append([table.text(problem), *counts, default, best, table.text(head["fingerprint"] or "not recorded")])
    columns = ["problem", "strategies", "runs", "cost of the default", "optimum", "fingerprint"]
    return Table("problems", "Problems", "Problems with different fingerprints are different problems.", columns, rows)


def places(runs: Sequence[RunResult]) -> Table:
    """Return the versions and machines that made the runs, and how many runs each made."""
    kinds: Counter[tuple[str, str]] = Counter()
    for run in runs:
        for part in ("versions", "machine"):
            facts = run.head.get(part) or {}
            shown = ", ".join(f"{name} {_text(value)}" for name, value in facts.items() if value is not None)
            kinds[part, shown or "not recorded"] += 1
    rows = [[table.text(part), table.text(shown), table.count(runs)] for (part, shown), runs in sorted(kinds.items())]
    return Table(
        "places", "Versions and machines", "As recorded at the start of each run.", ["kind", "value", "runs"], rows
    )


def limits(runs: Sequence[RunResult]) -> Iterator[Limit]:
    """Yield what follows if runs were made differently."""
    several = Counter(run.head["strategy"] for run in {run.strategy: run for run in runs}.values())
    for name, number in several.items():
        if number > 1:
            text = f"{name} was run with {number} settings, which are shown as separate strategies, #1 to #{number}."
            yield Limit("settings differ", (name,), text)
    contents = Counter(run.head["problem"] for run in {run.problem: run for run in runs}.values())
    for name, number in contents.items():
        if number > 1:
            text = f"{name} changed during the study; its {number} versions are shown as separate problems."
            yield Limit("problem changed", (name,), text)
    for part, what in (("machine", "machines"), ("versions", "software versions")):
        kinds = {json.dumps(run.head.get(part), sort_keys=True) for run in runs}
        if len(kinds) > 1:
            text = f"The runs were made on {len(kinds)} different {what}, so their times are not comparable."
            yield Limit(f"several {what}", tuple(sorted(kinds)), text)
