"""A study as one HTML page: the answer first, then what it rests on, and what it does not support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import UserError
from ..store import RUN, disk_errors
from . import comparison, contest, limits, optimum, origin, results, times, words
from .answer import Judgement, sentences
from .evidence import Evidence, read
from .page import Page, html
from .pictures import pictures
from .scores import scores
from .table import Table

__all__ = ["judge", "page", "write"]


def write(study: str, results: Path, out: Path | None = None, compare: str | None = None) -> Path:
    """Write the report of a study and return its path: `report.html` in the study's folder, if none is given.

    Args:
      compare: another study to set beside it: a name in `results`, or a path to its folder.

    Raises:
      UserError: there is no such study, the file cannot be written, or the other study's problems are not the same.
    """
    evidence = read(study, results)
    other = _other(compare, results) if compare else None
    text = html(page(evidence, other))
    path = out or results / study / "report.html"
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def _other(name: str, results: Path) -> Evidence:
    if list((results / name).glob(f"*/{RUN}")):
        return read(name, results)
    path = Path(name)
    if not list(path.glob(f"*/{RUN}")):
        raise UserError(f"there is no study {name!r}: neither in {results} nor as a path to a study's folder")
    return read(path.resolve().name, path.resolve().parent)


def judge(evidence: Evidence, rng: np.random.Generator) -> Judgement:
    """Return every contest of a study."""
    made = scores(evidence.records)
    problems = {problem: contest.on_problem(made, problem) for problem in made.at}
    overall = contest.over_problems(made, rng) if len(made.whole) > 1 else next(iter(problems.values()), None)
    return Judgement(made, overall, problems)


def page(evidence: Evidence, other: Evidence | None = None) -> Page:
    """Return what a study's report says, beside another study if there is one.

    Raises:
      UserError: the other study's problems are not the same.
    """
    compared = comparison.beside(evidence, other) if other else None
    rng = np.random.default_rng(0)
    judgement = judge(evidence, rng)
    optima, notes = optimum.optima(judgement.scores)
    tables = [*_found(judgement, rng), optima, times.running_times(judgement.scores), times.spending(judgement.scores)]
    failed = [times.failures(judgement.scores), times.reasons(judgement.scores)]
    made = [origin.settings(evidence.records), origin.problems(evidence.records), origin.places(evidence.records)]
    doubts = [*limits.limits(evidence, judgement), *origin.doubts(evidence.records), *notes]
    drawn = list(pictures(evidence.frame)) if len(evidence.frame) else []
    answers = list(sentences(judgement))
    return Page(evidence.name, _summary(evidence), answers, doubts, compared, _filled(tables), drawn, _filled([*failed, *made]))


def _found(judgement: Judgement, rng: np.random.Generator) -> Iterator[Table]:
    over_problems = results.overall(judgement, rng)
    if over_problems is not None:
        yield over_problems
    yield results.winners(judgement)
    yield results.speedups(judgement.scores)
    yield from results.duels(judgement)


def _filled(tables: Sequence[Table]) -> list[Table]:
    return [table for table in tables if table.rows]


def _summary(evidence: Evidence) -> str:
    records = evidence.records
    if not records:
        return "No run can be read."
    strategies, problems = sorted({r.strategy for r in records}), sorted({r.problem for r in records})
    budgets = words.span([int(record.head["budget"]) for record in records])
    return (
        f"{words.counted(len(strategies), 'strategy')} on {words.counted(len(problems), 'problem')}: "
        f"{words.counted(len(records), 'run')} of {budgets} evaluations. Strategies: {words.listed(strategies, 40)}. "
        f"Problems: {words.listed(problems, 20)}."
    )
