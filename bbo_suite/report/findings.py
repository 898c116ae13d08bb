"""What was found on each problem: the cost before and after, who found it, the program, and how to use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..core.level import Level
from ..core.quantities import cost, effect
from ..errors import UserError
from ..registry import Registry
from ..store.folders import has_begun
from ..store.plan import RunName
from ..store.results import RunResult
from ..store.stored_run import StoredRun, open_run
from . import table
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
    best = sorted(_best_runs(study.runs), key=lambda run: -_ratio(run))
    if not best:
        return None
    shown = [_finding(study, run, registry, number) for number, run in enumerate(best[:MOST])]
    command = f"python -m bbo_suite best {study.name} --minimal" if study.folder else ""
    return Findings(_table(best, not study.only_results), shown if study.folder else [], command)


def _best_runs(runs: Sequence[RunResult]) -> list[RunResult]:
    """Return the run with the best configuration of each problem that has one; of several, one which found it first."""
    found: dict[str, RunResult] = {}
    for run in (run for run in runs if run.choice is not None):
        known = found.setdefault(run.problem, run)
        if _key(run) < _key(known):
            found[run.problem] = run
    return list(found.values())


def _key(run: RunResult) -> tuple[float, int]:
    evaluation, ratio = run.choice or (0, 0.0)
    return -ratio, evaluation


def _ratio(run: RunResult) -> float:
    """Return the default's cost / that of the best configuration, as `best` says it."""
    return -_key(run)[0]


def _cost(run: RunResult) -> float:
    return float(run.head["default"]) / _ratio(run)


def _table(best: Sequence[RunResult], steps: bool) -> Table:
    """Return one row per problem.

    Args:
      steps: it is known after how many evaluations the costs were found.
    """
    columns = ["problem", "cost by default", "best cost", "gain", "found by", "seed"]
    rows = [[*_row(run), *([table.count(_key(run)[1])] if steps else [])] for run in best]
    note = (
        "As best prints them. Noisy costs are measured again after the search: here the best of a run's ten "
        "candidates counts, in comparisons of strategies the one of the lowest cost in the search."
    )
    return Table("found", "Best configurations", note, [*columns, *(["at evaluation"] if steps else [])], rows)


def _row(run: RunResult) -> list[Cell]:
    default, unit, ratio = float(run.head["default"]), run.head["unit"], _ratio(run)
    costs = [table.number(value, cost(value, unit)) for value in (default, _cost(run))]
    found = [table.strategy(run.strategy, Level.of(run.head)), table.count(run.seed)]
    return [table.text(run.problem), *costs, table.number(ratio, effect(ratio, unit)), *found]


def _finding(study: StudyData, run: RunResult, registry: Registry, number: int) -> Finding:
    head = run.head
    again = " when measured again" if run.finalists else ""
    costs = f"{head['default']:.6g} → {cost(_cost(run), head['unit'])}, {effect(_ratio(run), head['unit'])}{again}"
    named = Finding(run.problem, costs)
    folder = study.folder and study.folder / RunName(head["problem"], head["strategy"], head["seed"]).folder
    if folder is None or not has_begun(folder):
        return named
    quick = run.evaluation_seconds / run.evaluations < _QUICK
    try:
        found = _explained(named, open_run(folder), registry, f"found-{number}.", quick)
        return found if found.missing or quick or run.finalists else replace(found, missing=_LONG)
    except UserError as error:
        return replace(named, missing=str(error))


def _explained(named: Finding, run: StoredRun, registry: Registry, prefix: str, quick: bool) -> Finding:
    from ..figures import outcome
    from ..verify.best import best_of_run, text_of_run

    best = best_of_run(registry, run, simplify=True) if quick else text_of_run(registry, run)
    text = best.paste if len(best.paste) <= _LONGEST else f"{best.paste[:_LONGEST]}\n…"
    named = replace(named, text="" if best.better else text, usage=best.usage, missing=best.why_not or best.better)
    return named if best.minimal is None else replace(named, drawing=drawing(outcome.draw(best)[0], prefix))
