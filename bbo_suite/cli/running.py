"""`run`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .app import INTERRUPTED, AsLines, app, draw, strict
from .study_options import StudyOptions, takes_study

if TYPE_CHECKING:
    from ..runs.runner import StudyOutcome
    from ..runs.study_plan import StudyPlan


@app.command()
@takes_study
def run(
    options: StudyOptions,
    cluster: Annotated[
        str | None, typer.Option(metavar="tcp://HOST:PORT", help="Do the runs on the workers of a Dask scheduler.")
    ] = None,
    as_json: AsLines = False,
) -> None:
    """Run strategies on problems; the same command again resumes. Without arguments: a short demonstration."""
    from .tables import reserved, summary_table

    with reserved(as_json):
        made = options.made()
        report = _perform(made, options, cluster)
    if made.only and not made.share:
        print(f"share {made.only[0]}/{made.only[1]} holds no run: the study has {len(made.runs)}", file=sys.stderr)
    for error in report.errors:
        print(f"error: {error}", file=sys.stderr)
    for summary in report.summaries if as_json else ():
        print(strict(summary), flush=True)
    if report.summaries and not as_json:
        summary_table(report.summaries)
        if made.only:
            print(f"when all shares are done: python -m bbo_suite plot {made.name}{_elsewhere(made)}")
        elif not report.stopped:
            draw(made.name, made.results)
    if report.stopped:
        print(f"stopped; everything is stored in {made.path}: run the same command to resume", file=sys.stderr)
    raise typer.Exit(INTERRUPTED if report.stopped else 1 if report.errors else 0)


def _elsewhere(study: StudyPlan) -> str:
    """Return the option that says where the study is, if that is not the default."""
    return "" if study.results == Path("results") else f" --results {shlex.quote(str(study.results))}"


def _perform(study: StudyPlan, options: StudyOptions, cluster: str | None) -> StudyOutcome:
    from ..runs.runner import run_study
    from .progress import display

    try:
        return run_study(study, options.jobs, display(options.quiet), cluster)
    except KeyboardInterrupt:  # the second; typer would end without a word
        print(f"ended; what was stored in {study.path} is kept: run the same command to resume", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
