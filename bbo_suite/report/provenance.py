"""Provenance of the numbers: settings, problems, versions and machines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.level import Level
from ..store.results import RunResult
from . import formatting, table
from .limits import Limit
from .table import Table


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
