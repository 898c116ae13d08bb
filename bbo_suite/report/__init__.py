"""A study as one HTML page: the answer first, then what it rests on, and what it does not support."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import UserError
from ..files import disk_errors, replacing
from ..registry import Registry
from ..store.folders import has_runs
from . import beside, contest, failures, limits, optimum, origin, overall, results, times, words
from .answer import Judgement, sentences
from .evidence import Evidence, read
from .page import Page, html
from .pictures import judged, pictures
from .record import Record
from .scores import scores
from .table import Table

__all__ = ["judge", "page", "write"]


def write(
    study: str, results: Path, out: Path | None = None, compare: str | None = None, plugins: Sequence[Path] = ()
) -> Path:
    """Write the report of a study and return its path: `report.html` in the study's folder, if none is given.

    Args:
      compare: another study to set beside it: a name in `results`, or a path to its folder.
      plugins: files that define problems of the study; of a small one all candidates are costed, for a baseline.

    Raises:
      UserError: there is no such study, the file cannot be written, a plugin cannot be read, or the other study's
        problems are not the same.
    """
    evidence = read(study, results)
    other = _other(compare, results) if compare else None
    text = html(page(evidence, other, Registry(tuple(plugins))))
    path = out or results / study / "report.html"
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def _other(name: str, results: Path) -> Evidence:
    for path in ((results / name).absolute(), Path(name).absolute()):
        if has_runs(path):
            return read(path.name, path.parent)
    raise UserError(f"there is no study {name!r}: neither in {results} nor as a path to a study's folder")


def judge(evidence: Evidence, rng: np.random.Generator) -> Judgement:
    """Return every contest of a study."""
    made = scores(evidence.records)
    problems = {problem: contest.on_problem(made, problem) for problem in made.at}
    together = contest.over_problems(made, rng) if len(problems) > 1 else next(iter(problems.values()), None)
    return Judgement(made, together, problems)


def page(evidence: Evidence, other: Evidence | None = None, registry: Registry | None = None) -> Page:
    """Return what a study's report says, beside another study if there is one.

    Args:
      registry: of the problems; the one without plugins when left out.

    Raises:
      UserError: the other study's problems are not the same.
    """
    compared = beside.beside(evidence, other) if other else None
    rng = np.random.default_rng(0)
    judgement = judge(evidence, rng)
    optima, notes = optimum.optima(judgement.scores, registry or Registry())
    tables = [*_found(judgement, rng), optima, times.running_times(judgement.scores), times.spending(judgement.scores)]
    failed = [failures.failures(judgement.scores), failures.reasons(judgement.scores)]
    made = [origin.settings(evidence.records), origin.problems(evidence.records), origin.places(evidence.records)]
    doubts = [*limits.limits(evidence, judgement), *origin.doubts(evidence.records), *notes]
    drawn = list(pictures(judged(evidence.frame, judgement.scores))) if judgement.problems else []
    answers = list(sentences(judgement))
    return Page(
        evidence.name,
        _summary(evidence.records),
        answers,
        doubts,
        compared,
        _filled(tables),
        drawn,
        _filled([*failed, *made]),
    )


def _found(judgement: Judgement, rng: np.random.Generator) -> Iterator[Table]:
    yield from filter(None, [overall.overall(judgement, rng)])
    yield results.winners(judgement)
    yield results.speedups(judgement.scores)
    yield from filter(None, [overall.duels(judgement)])


def _filled(tables: Sequence[Table]) -> list[Table]:
    return [table for table in tables if table.rows]


def _summary(records: Sequence[Record]) -> str:
    if not records:
        return "No run can be read."
    problems = sorted({record.problem for record in records})
    families = Counter(re.split("[/:]", problem)[0] for problem in problems)
    what = problems if len(problems) < 4 else [f"{number} of {family}" for family, number in families.items()]
    seeing = {record.strategy for record in records if record.head["uses_structure"]}
    blind = {record.strategy for record in records} - seeing
    kinds = ((blind, "only costs"), (seeing, "the structure that a problem declares"))
    shown = [
        f"{words.listed(sorted(names))} {'sees' if len(names) == 1 else 'see'} {it}" for names, it in kinds if names
    ]
    size = f"{words.counted(len(blind | seeing), 'strategy')} on {words.counted(len(problems), 'problem')}"
    budgets = words.span([int(record.head["budget"]) for record in records])
    spent = f"{words.counted(len(records), 'run')} of {budgets} evaluations"
    return f"{size} ({words.listed(what)}): {spent}. {'; '.join(shown)}."
