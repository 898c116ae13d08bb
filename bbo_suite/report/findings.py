"""What was found on each problem: the cost before and after, who found it, the program, and how to use it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from ..core.level import Level
from ..errors import UserError
from ..registry import Registry
from ..store.folders import has_begun
from ..store.plan import RunName
from ..store.results import RunResult
from ..store.stored_run import StoredRun, open_run
from . import formatting, table
from .drawings import Drawing, drawing
from .study_data import StudyData
from .table import Cell, Table

MOST = 3
"""Problems whose best configuration is shown, those with the largest gains."""
_QUICK = 0.005
"""Seconds: where an evaluation took longer, a report evaluates nothing, since simplifying takes hundreds of them."""
_LONG = "Not measured again here, because an evaluation takes long."
_LONGEST = 4000
"""Letters of a configuration that are shown, at most."""


@dataclass(frozen=True)
class Finding:
    """The best configuration on a problem.

    Attributes:
      problem: its name in the report.
      cost: before and after, as stored, in words.
      text: the configuration as text for the compiler; empty if it is not available.
      usage: how to use the text.
      drawing: of the program before and after, or of the changes; None if there is none.
      missing: why something is not shown; empty if all is.
    """

    problem: str
    cost: str
    text: str = ""
    usage: str = ""
    drawing: Drawing | None = None
    missing: str = ""


@dataclass(frozen=True)
class Findings:
    """What a study found.

    Attributes:
      table: one row per problem.
      shown: the configurations with the largest gains.
      command: that prints every configuration, measured again; empty if the study keeps no configurations.
    """

    table: Table
    shown: Sequence[Finding] = field(default_factory=list)
    command: str = ""


def findings(study: StudyData, registry: Registry) -> Findings | None:
    """Return what a study found; None if no run found a candidate that works.

    The programs of at most three problems are evaluated, and only where an evaluation takes milliseconds.
    """
    best = sorted(_best_runs(study.runs), key=lambda run: -_speedup(run))
    if not best:
        return None
    shown = [_finding(study, run, registry, number) for number, run in enumerate(best[:MOST])]
    command = f"python -m bbo_suite best {study.name} --minimal" if study.folder else ""
    return Findings(_table(best, not study.only_results), shown if study.folder else [], command)


def _best_runs(runs: Sequence[RunResult]) -> list[RunResult]:
    """Return the run with the lowest cost on each problem; of equal ones, that which found it first.

    Of what was measured again, half of the rounds choose the run, and `_speedup` shows the others: the best of many
    noisy numbers is too good.
    """
    found: dict[str, RunResult] = {}
    for run in (run for run in runs if len(run.costs)):
        known = found.setdefault(run.problem, run)
        if (_cost(run), run.steps[-1]) < (_cost(known), known.steps[-1]):
            found[run.problem] = run
    return list(found.values())


def _cost(run: RunResult) -> float:
    again = run.rounds[::2]
    if not again:
        return float(run.costs[-1])
    return float(run.head["default"]) / median(again) if median(again) else math.inf


def _speedup(run: RunResult) -> float:
    again = run.rounds[1::2]
    return median(again) if again else run.speedup(run.evaluations)


def _table(best: Sequence[RunResult], steps: bool) -> Table:
    """Return one row per problem.

    Args:
      steps: it is known after how many evaluations the costs were found.
    """
    columns = ["problem", "cost by default", "best cost", "speedup", "found by", "seed"]
    rows = [[*_row(run), *([table.count(int(run.steps[-1]))] if steps else [])] for run in best]
    note = (
        "Speedup: default's cost / best cost, of the best run. Costs as stored in the search; if they are noisy, the "
        "speedup is measured again."
    )
    return Table("found", "Best configurations", note, [*columns, *(["at evaluation"] if steps else [])], rows)


def _row(run: RunResult) -> list[Cell]:
    default, cost = float(run.head["default"]), float(run.costs[-1])
    costs = [table.number(default, f"{default:.6g} {run.head['unit']}".strip()), table.number(cost, f"{cost:.6g}")]
    found = [table.strategy(run.strategy, Level.of(run.head)), table.count(run.seed)]
    return [table.text(run.problem), *costs, table.speedup(_speedup(run)), *found]


def _finding(study: StudyData, run: RunResult, registry: Registry, number: int) -> Finding:
    head = run.head
    speedup = f"speedup {formatting.speedup(_speedup(run))}{' when measured again' if run.rounds else ''}"
    cost = f"{head['default']:.6g} → {run.costs[-1]:.6g} {head['unit']}, {speedup}"
    named = Finding(run.problem, cost)
    folder = study.folder and study.folder / RunName(head["problem"], head["strategy"], head["seed"]).folder
    if folder is None or not has_begun(folder):
        return named
    quick = run.evaluation_seconds / run.evaluations < _QUICK
    try:
        found = _explained(named, open_run(folder), registry, f"found-{number}.", quick)
        return found if found.missing or quick or run.rounds else replace(found, missing=_LONG)
    except UserError as error:
        return replace(named, missing=str(error))


def _explained(named: Finding, run: StoredRun, registry: Registry, prefix: str, quick: bool) -> Finding:
    from ..figures import outcome
    from ..verify.best import best_of_run, text_of_run

    best = best_of_run(registry, run, simplify=True) if quick else text_of_run(registry, run)
    text = best.paste if len(best.paste) <= _LONGEST else f"{best.paste[:_LONGEST]}\n…"
    named = replace(named, text=text, usage=best.usage, missing=best.why_not)
    return named if best.minimal is None else replace(named, drawing=drawing(outcome.draw(best)[0], prefix))
