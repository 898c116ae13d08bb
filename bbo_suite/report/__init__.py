"""A study as one HTML page: the answer first, then its limits, and the results that it is based on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from .. import figures, forecast
from ..errors import UserError, leave_out
from ..files.writing import write_text
from ..registry import Registry
from ..store.folders import has_runs
from . import answer, limits, optimum, provenance, rankings, targets
from .compare import comparison
from .drawings import RESULTS_LEAD, Drawing, compared_rows, drawing, pictures
from .findings import Findings, findings
from .judgement import Judgement, judge
from .limits import Limit
from .page import Page, html
from .rankings import loss_table
from .study_data import StudyData, read_study
from .table import Table

__all__ = ["headlines", "judge", "page", "read_study", "write"]


def write(
    study: str,
    results: Path,
    out: Path | None = None,
    compare: str | None = None,
    plugins: Sequence[Path] = (),
    told: list[str] | None = None,
) -> Path:
    """Write the report of a study and return its path.

    Args:
      out: the file (default: `report.html` in the study's folder).
      compare: another study to compare with: a name in `results`, or a path to its folder.
      plugins: files that define problems of the study; small ones are enumerated for an exact random-search baseline.
      told: takes what the comparison says, of all strategies and of each, and what more evaluations would bring.

    Raises:
      UserError: there is no such study, the file cannot be written, a plugin cannot be read, or the other study's
        problems are not the same.
    """
    data = read_study(study, results)
    for damage in data.damaged:
        leave_out(damage)
    other = _other(compare, results) if compare else None
    made = page(data, other, Registry(tuple(plugins)))
    if told is not None:
        told += [*(made.compared.verdicts if made.compared else ()), *forecast.of_results(data.runs)]
    path = out or data.report or results / study / "report.html"
    write_text(path, html(made), errors="backslashreplace")
    return path


def headlines(study: str, results: Path) -> list[str]:
    """Return the first sentence of a study's report, or two for two kinds of strategies; and what more would bring."""
    runs = read_study(study, results, with_rows=False).runs
    return [*answer.headlines(judge(runs, np.random.default_rng(0))), *forecast.of_results(runs)]


def _other(name: str, results: Path) -> StudyData:
    for path in ((results / name).absolute(), Path(name).absolute()):
        if has_runs(path):
            return read_study(path.name, path.parent)
    raise UserError(f"there is no study {name!r}: neither in {results} nor as a path to a study's folder")


def page(
    study: StudyData, other: StudyData | None = None, registry: Registry | None = None, spaces: bool = False
) -> Page:
    """Return the content of a study's report.

    Args:
      other: a study to compare with.
      registry: of the problems (default: without plugins).
      spaces: draw spaces that are known whole even if only the results of runs are known; else always.

    Raises:
      UserError: the other study's problems are not the same.
    """
    compared = comparison(study, other) if other else None
    registry = registry or Registry()
    rng = np.random.default_rng(0)
    judgement = judge(study.runs, rng)
    scores = judgement.scores
    found_tables = list(_rankings(judgement, rng))
    optima, unknown = optimum.optima(scores, registry)
    times = [] if study.only_results else [targets.savings(judgement), targets.running_times(scores)]
    tables = [*found_tables, optimum.baselines(scores), optima, *times, provenance.spending(scores)]
    found = findings(study, registry)
    rows = study.frame if study.only_results else compared_rows(study.frame, scores)  # runs may have ended by time
    drawn = optimum.spaces(scores, registry) if spaces or not study.only_results else ()
    return Page(
        title=study.name,
        summary=answer.summary(study.runs),
        findings=found,
        lead=_lead(study, found) if judgement.problems else None,
        answers=[*answer.sentences(judgement), *([] if study.only_results else _by_evaluations(study, judgement))],
        limits=[*_limits(study, judgement), *provenance.limits(study.runs), *unknown],
        compared=compared,
        tables=[each.naming(scores.ratio) for each in _filled(tables)],
        pictures=[*pictures(rows, study.only_results), *drawn] if judgement.problems else [],
        provenance=_filled(_provenance(study, judgement)),
    )


def _by_evaluations(study: StudyData, judgement: Judgement) -> Iterator[str]:
    yield from targets.sentences(judgement)
    yield from forecast.of_results(study.runs)


def _rankings(judgement: Judgement, rng: np.random.Generator) -> Iterator[Table]:
    yield from rankings.overviews(judgement, rng)
    yield rankings.winners(judgement)
    yield rankings.speedups(judgement.scores)
    yield from filter(None, [rankings.pairwise(judgement)])
    yield loss_table(judgement.scores)


def _lead(study: StudyData, found: Findings | None) -> Drawing | None:
    """Return the convergence on the problem with the largest gain, if nothing that was found is drawn there.

    Without the evaluations it is the gain on each problem, which `pictures` then leaves out.
    """
    if found is None or any(finding.drawing for finding in found.shown[:1]):
        return None
    options = {} if study.only_results else {"problems": [found.shown[0].problem]}
    figure = figures.FIGURES.get(RESULTS_LEAD if study.only_results else "convergence")
    return drawing(figure(study.frame, **options)[0], "lead.") if figure and not figure.missing(study.frame) else None


def _limits(study: StudyData, judgement: Judgement) -> Iterator[Limit]:
    yield from (Limit("damaged", (sentence,), f"A run is left out: {sentence}.") for sentence in study.damaged)
    if study.only_results:
        yield Limit("only results", (), "Only the result of each run is kept: how soon it was found is not known here.")
    if judgement.problems:
        yield from limits.not_started(study.waiting, study.planned)
        yield from limits.missing(study.runs)
        yield from limits.unfinished(study.runs)
        if not judgement.all_failed:
            yield from limits.sizes(judgement)
            yield from limits.tests(judgement)
        yield from limits.budgets(judgement.scores)
        yield from limits.hopeless(judgement.scores)
        yield from limits.noise(judgement.scores)


def _provenance(study: StudyData, judgement: Judgement) -> Iterator[Table]:
    yield provenance.failures(judgement.scores)
    yield provenance.reasons(judgement.scores)
    yield provenance.settings(study.runs)
    yield provenance.problems(study.runs)
    yield provenance.places(study.runs)


def _filled(tables: Iterator[Table] | Sequence[Table]) -> list[Table]:
    return [table for table in tables if table.rows]
