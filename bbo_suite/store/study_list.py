"""All studies of a folder in numbers, from the names and times of their files: no row is read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .folders import END, ROWS, RUN, STUDY, has_runs, runs_in
from .plan import RunName, read_planned
from .run_view import read_object


def studies(results: Path) -> Iterator[dict[str, Any]]:
    """Yield name, problems, strategies, runs, finished runs, budget and last change of each study, by name."""
    for path in sorted(results.glob("*")):
        if (path / STUDY).exists() or has_runs(path):
            yield _study(path)


def _study(path: Path) -> dict[str, Any]:
    runs = known_runs(path)
    return {
        "study": path.name,
        "problems": list(dict.fromkeys(run.problem for run in runs.values())),
        "strategies": list(dict.fromkeys(run.strategy for run in runs.values())),
        "runs": len(runs),
        "done": sum((path / folder / END).exists() for folder in runs),
        "budget": read_object(path / STUDY).get("budget"),
        "changed": _changed(path),
    }


def known_runs(study: Path) -> dict[str, RunName]:
    """Return by folder the runs that a study lists, and those in it that older versions did not list."""
    found = {run.folder: run for run in read_planned(study)}
    for path in runs_in(study):
        if path.name not in found:
            head = read_object(path / RUN)
            found[path.name] = RunName(*(head.get(field, "?") for field in RunName._fields))
    return found


def _changed(path: Path) -> str:
    """Return when the last row was stored, in UTC."""
    times = [file.stat().st_mtime for file in path.glob(f"*/{ROWS}")] or [path.stat().st_mtime]
    return datetime.fromtimestamp(max(times), UTC).isoformat(timespec="seconds")
