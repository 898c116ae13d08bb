"""Where the numbers come from: settings, versions, machines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from . import formatting, table
from .run_summary import RunSummary
from .table import Table


def settings(records: Sequence[RunSummary]) -> Table:
    """Return every strategy's options, budget and batch size."""
    rows = []
    for strategy in sorted({record.strategy for record in records}):
        runs = [record for record in records if record.strategy == strategy]
        options = runs[0].head["options"]
        shown = ", ".join(f"{name} = {_text(value)}" for name, value in options.items()) if options else "none"
        sees = "yes" if runs[0].head["uses_structure"] else "no"
        sizes = [formatting.span([int(run.head[name]) for run in runs]) for name in ("budget", "batch")]
        rows.append([table.text(strategy), table.text(sees), *map(table.text, sizes), table.text(shown)])
    columns = ["strategy", "sees the structure", "budget", "batch", "options"]
    note = "As stored with the runs; the same strategy with other options is a strategy of its own here."
    return Table("settings", "Settings of every strategy", note, columns, rows)


def _text(value: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    return value if value and isinstance(value, str) else json.dumps(value)


def problems(records: Sequence[RunSummary]) -> Table:
    """Return every problem: what its default costs, its optimum and its fingerprint."""
    rows = []
    for problem in sorted({record.problem for record in records}):
        runs = [record for record in records if record.problem == problem]
        head = runs[0].head
        optimum = head.get("optimum")
        default = table.number(float(head["default"]), f"{head['default']:.6g} {head['unit']}")
        best = table.text("unknown" if optimum is None else f"{optimum:.6g}")
        strategies = {run.strategy for run in runs}
        counts = [table.count(len(strategies)), table.count(len(runs))]
        rows.append([table.text(problem), *counts, default, best, table.text(head["fingerprint"])])
    columns = ["problem", "strategies", "runs", "cost of the default", "optimum", "fingerprint"]
    return Table("problems", "Problems", "Runs of different fingerprints are never mixed.", columns, rows)


def places(records: Sequence[RunSummary]) -> Table:
    """Return the versions and machines that made the runs, and how many runs each made."""
    kinds: Counter[tuple[str, str]] = Counter()
    for record in records:
        for part in ("versions", "machine"):
            facts = record.head.get(part) or {}
            shown = ", ".join(f"{name} {_text(value)}" for name, value in facts.items() if value is not None)
            kinds[part, shown or "not noted"] += 1
    rows = [[table.text(part), table.text(shown), table.count(runs)] for (part, shown), runs in sorted(kinds.items())]
    return Table(
        "places", "Versions and machines", "As noted when each run was started.", ["what", "which", "runs"], rows
    )


def doubts(records: Sequence[RunSummary]) -> Iterator[str]:
    """Yield what follows from runs that were made differently."""
    several = Counter(record.head["strategy"] for record in {r.strategy: r for r in records}.values())
    for name, number in several.items():
        if number > 1:
            yield f"{name} was run with {number} settings, which are shown as strategies of their own, #1 to #{number}."
    contents = Counter(record.head["problem"] for record in {r.problem: r for r in records}.values())
    for name, number in contents.items():
        if number > 1:
            yield f"{name} changed while the study was made; its {number} versions are shown as problems of their own."
    for part, what in (("machine", "machines"), ("versions", "versions of the software")):
        kinds = {json.dumps(record.head.get(part), sort_keys=True) for record in records}
        if len(kinds) > 1:
            yield f"The runs were made on {len(kinds)} different {what}, so their seconds do not compare."
