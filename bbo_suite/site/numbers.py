"""The numbers of a site: one row per run, and the points of each run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..core.level import LEVEL
from ..report.run_summary import RunSummary
from .studies import Entry

if TYPE_CHECKING:
    import pandas as pd

_STORED = ("problem", "fingerprint", "strategy", "seed", "budget", LEVEL, "unit", "default")


def task(run: RunSummary) -> str:
    """Return the digest of a run's problem; its id where the digest is not recorded."""
    return str(run.head["fingerprint"] or run.head["problem"])


def cost(run: RunSummary) -> float:
    """Return the best cost of a run, measured again if it was; inf if nothing succeeded."""
    return run.final_cost


def best_known(runs: Iterable[RunSummary]) -> dict[str, float]:
    """Return the lowest cost of each task: of its runs, or the optimum where it is known."""
    known: dict[str, float] = {}
    for run in runs:
        optimum = run.head.get("optimum")
        costs = cost(run), math.inf if optimum is None else float(optimum)
        known[task(run)] = min(known.get(task(run), math.inf), *costs)
    return known


def points(run: RunSummary, known: dict[str, float]) -> float:
    """Return best known cost / cost: 1 is the best known, 0 if nothing succeeded."""
    best, own = known[task(run)], cost(run)
    return 1.0 if own == best < math.inf else best / own if own < math.inf else 0.0


def table(entries: Iterable[Entry]) -> pd.DataFrame:
    """Return one row per run; `store.run_table` reads it."""
    import pandas as pd

    return pd.DataFrame([{"study": entry.name, **_row(run)} for entry in entries for run in entry.runs])


def _row(run: RunSummary) -> dict[str, Any]:
    best = cost(run)
    return {
        **{name: run.head[name] for name in _STORED},
        "best": best,
        "speedup": run.final_speedup,
        "evaluations": run.evaluations,
        "unique": run.unique,
        "failed": run.failures.total(),
        "strategy_seconds": run.strategy_seconds,
        "evaluation_seconds": run.evaluation_seconds,
        "status": status(run),
    }


def status(run: RunSummary) -> str:
    """Return how a run ended: budget, covered or time; unfinished, or failed if an error stopped it."""
    return run.ended or ("failed" if run.error else "unfinished")


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


def _point(study: str, run: RunSummary, known: dict[str, float]) -> dict[str, Any]:
    named = {name: run.head[name] for name in ("strategy", "options", "seed", "budget")}
    result = {"cost": _number(cost(run)), "points": _number(points(run, known)), "status": status(run)}
    return {"task": task(run), "study": study, **named, "evaluations": run.evaluations, **result}


def _number(value: float) -> float | None:
    """Return a number as JSON can hold it."""
    return value if math.isfinite(value) else None
