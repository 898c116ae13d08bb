"""The numbers of a site: one row per run, and the points of each run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..store.results import RunResult
from ..store.run_table import row_of, table_of
from .studies import Entry

if TYPE_CHECKING:
    import pandas as pd


def task(run: RunResult) -> str:
    """Return the digest of a run's problem; its id where the digest is not recorded."""
    return str(run.head["fingerprint"] or run.head["problem"])


def cost(run: RunResult) -> float:
    """Return the best cost of a run, measured again if it was; inf if nothing succeeded."""
    return run.final_cost


def best_known(runs: Iterable[RunResult]) -> dict[str, float]:
    """Return the lowest cost of each task: of its runs, or the optimum where it is known."""
    known: dict[str, float] = {}
    for run in runs:
        optimum = run.head.get("optimum")
        costs = cost(run), math.inf if optimum is None else float(optimum)
        known[task(run)] = min(known.get(task(run), math.inf), *costs)
    return known


def points(run: RunResult, known: dict[str, float]) -> float:
    """Return best known cost / cost: 1 is the best known, 0 if nothing succeeded."""
    best, own = known[task(run)], cost(run)
    return 1.0 if own == best < math.inf else best / own if own < math.inf else 0.0


def table(entries: Iterable[Entry]) -> pd.DataFrame:
    """Return the table of the runs of all studies (see `store.run_table`), with the name of the study of each."""
    return table_of({"study": entry.name, **row_of(run)} for entry in entries for run in entry.runs)


def points_file(entries: Iterable[Entry], known: dict[str, float]) -> dict[str, Any]:
    """Return the content of `points.json`: tasks by digest, environments, and the points of each run."""
    environments: list[dict[str, Any]] = []
    tasks: dict[str, dict[str, Any]] = {}
    rows = []
    for entry in entries:
        for run in entry.runs:
            head = run.head
            tasks[task(run)] = {"problem": head["problem"], "unit": head["unit"], "default": head["default"]}
            place = {name: head[name] for name in ("versions", "machine") if head.get(name)}
            if place not in environments:
                environments.append(place)
            rows.append(_point(entry.name, run, known) | {"environment": environments.index(place)})
    best = {name: {**facts, "best_known": _number(known[name])} for name, facts in tasks.items()}
    return {"tasks": best, "environments": environments, "points": rows}


def _point(study: str, run: RunResult, known: dict[str, float]) -> dict[str, Any]:
    named = {name: run.head[name] for name in ("strategy", "options", "seed", "budget")}
    result = {"cost": _number(cost(run)), "points": _number(points(run, known)), "status": run.status}
    return {"task": task(run), "study": study, **named, "evaluations": run.evaluations, **result}


def _number(value: float) -> float | None:
    """Return a number as JSON can hold it."""
    return value if math.isfinite(value) else None
