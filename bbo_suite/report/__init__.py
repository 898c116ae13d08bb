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
from . import (
    compare_text,
    evaluations,
    formatting,
    leaderboard,
    limits,
    optimum,
    over_problems,
    per_problem,
    provenance,
    targets,
)
from .answer import Judgement, sentences
from .page import Page, html
from .pictures import judged, pictures
from .run_summary import RunSummary
from .scores import scores
from .study_data import StudyData, read_study
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
    data = read_study(study, results)
    other = _other(compare, results) if compare else None
    text = html(page(data, other, Registry(tuple(plugins))))
    path = out or results / study / "report.html"
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def _other(name: str, results: Path) -> StudyData:
    for path in ((results / name).absolute(), Path(name).absolute()):
        if has_runs(path):
            return read_study(path.name, path.parent)
    raise UserError(f"there is no study {name!r}: neither in {results} nor as a path to a study's folder")


def judge(study: StudyData, rng: np.random.Generator) -> Judgement:
    """Return every board of a study."""
    made = scores(study.records)
    problems = {problem: leaderboard.on_problem(made, problem) for problem in made.cutoffs}
    together = leaderboard.over_problems(made, rng) if len(problems) > 1 else next(iter(problems.values()), None)
    return Judgement(made, together, problems)


def page(study: StudyData, other: StudyData | None = None, registry: Registry | None = None) -> Page:
    """Return what a study's report says, beside another study if there is one.

    Args:
      registry: of the problems; the one without plugins when left out.

    Raises:
      UserError: the other study's problems are not the same.
    """
    compared = compare_text.compare(study, other) if other else None
    rng = np.random.default_rng(0)
    judgement = judge(study, rng)
    optima, notes = optimum.optima(judgement.scores, registry or Registry())
    tables = [
        *_found(judgement, rng),
        optima,
        targets.running_times(judgement.scores),
        evaluations.spending(judgement.scores),
    ]
    failed = [evaluations.failures(judgement.scores), evaluations.reasons(judgement.scores)]
    made = [provenance.settings(study.records), provenance.problems(study.records), provenance.places(study.records)]
    doubts = [*limits.limits(study, judgement), *provenance.doubts(study.records), *notes]
    drawn = list(pictures(judged(study.frame, judgement.scores))) if judgement.problems else []
    answers = list(sentences(judgement))
    return Page(
        study.name,
        _summary(study.records),
        answers,
        doubts,
        compared,
        _filled(tables),
        drawn,
        _filled([*failed, *made]),
    )


def _found(judgement: Judgement, rng: np.random.Generator) -> Iterator[Table]:
    yield from filter(None, [over_problems.overview(judgement, rng)])
    yield per_problem.winners(judgement)
    yield per_problem.speedups(judgement.scores)
    yield from filter(None, [over_problems.pairwise(judgement)])


def _filled(tables: Sequence[Table]) -> list[Table]:
    return [table for table in tables if table.rows]


def _summary(records: Sequence[RunSummary]) -> str:
    if not records:
        return "No run can be read."
    problems = sorted({record.problem for record in records})
    families = Counter(re.split("[/:]", problem)[0] for problem in problems)
    what = problems if len(problems) < 4 else [f"{number} of {family}" for family, number in families.items()]
    seeing = {record.strategy for record in records if record.head["uses_structure"]}
    blind = {record.strategy for record in records} - seeing
    kinds = ((blind, "only costs"), (seeing, "the structure that a problem declares"))
    shown = [
        f"{formatting.listed(sorted(names))} {'sees' if len(names) == 1 else 'see'} {it}"
        for names, it in kinds
        if names
    ]
    size = f"{formatting.counted(len(blind | seeing), 'strategy')} on {formatting.counted(len(problems), 'problem')}"
    budgets = formatting.span([int(record.head["budget"]) for record in records])
    spent = f"{formatting.counted(len(records), 'run')} of {budgets} evaluations"
    return f"{size} ({formatting.listed(what)}): {spent}. {'; '.join(shown)}."
