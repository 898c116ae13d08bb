"""`run`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .app import INTERRUPTED, AsLines, app, draw_main_figures, json_line
from .study_options import StudyOptions, takes_study

if TYPE_CHECKING:
    from ..runs.runner import StudyOutcome
    from ..runs.study_plan import StudyPlan


@app.command()
@takes_study
def run(
    options: StudyOptions,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="tcp://HOST:PORT", help="Run on the workers of a Dask scheduler at this address."),
    ] = None,
    as_json: AsLines = False,
) -> None:
    """Run strategies on problems. The same command again resumes. Without arguments: a short demonstration."""
    from .tables import reserved, summary_table

    if options.plan is not None:
        _run_plan(options, cluster)
    with reserved(as_json):
        study = options.to_study()
        report = _perform(study, options, cluster)
    if study.only and not study.share:
        print(f"share {study.only[0]}/{study.only[1]} is empty: the study has {len(study.runs)} runs", file=sys.stderr)
    for error in report.errors:
        print(f"error: {error}", file=sys.stderr)
    for summary in report.summaries if as_json else ():
        print(json_line(summary), flush=True)
    if report.summaries and not as_json:
        summary_table(report.summaries)
        if study.only:
            print(f"when all shares are done: {_command('report', study)}")
        elif not report.stopped:
            draw_main_figures(study.name, study.results)
            _conclude(study, options)
    if report.stopped:
        print(f"stopped; everything is stored in {study.path}: run the same command to resume", file=sys.stderr)
    raise typer.Exit(INTERRUPTED if report.stopped else 1 if report.errors else 0)


def _run_plan(options: StudyOptions, cluster: str | None) -> None:
    """Make the runs of a plan, add them to its table, and say whether they equal those that it has."""
    planned = options.to_studies()
    studies = [study for *_, study in planned.studies]
    errors, stopped = [], False
    for number, study in enumerate(studies, 1):
        print(f"study {number} of {len(studies)}, {study.name}: {len(study.share):,} runs", file=sys.stderr)
        outcome = _perform(study, options, cluster) if study.share else None
        errors += outcome.errors if outcome else []
        if stopped := outcome is not None and outcome.stopped:
            break
    new, equal, different = planned.update()
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    for name in different:
        print(f"error: the run {name} differs from the one in {planned.table}", file=sys.stderr)
    print(f"{planned.table}: {new:,} runs are new; {equal:,} are equal to those that it had, {len(different):,} differ")
    if stopped:
        print("stopped; everything is stored: run the same command to resume", file=sys.stderr)
    raise typer.Exit(INTERRUPTED if stopped else 1 if errors or different else 0)


def _conclude(study: StudyPlan, options: StudyOptions) -> None:
    """Print the headlines of the report, which cover all runs of the study, and the commands that come next."""
    from ..report import headlines
    from .tables import wide_console

    console = wide_console()
    print()
    for sentence in headlines(study.name, study.results):
        console.print(sentence, markup=False, highlight=False, soft_wrap=not console.is_terminal)
    print()
    print(f"next: {_command('report', study)}  (figures and tests on one page)")
    plugins = "".join(f" --plugin {shlex.quote(str(path))}" for path in options.plugin or ())
    print(f"      {_command('best', study)}{plugins}  (what was found, measured again)")


def _command(name: str, study: StudyPlan) -> str:
    """Return a command for the study, with `--results` unless it is in the default folder."""
    results = "" if study.results == Path("results") else f" --results {shlex.quote(str(study.results))}"
    return f"python -m bbo_suite {name} {shlex.quote(study.name)}{results}"


def _perform(study: StudyPlan, options: StudyOptions, cluster: str | None) -> StudyOutcome:
    from ..runs.runner import run_study
    from .progress import display

    try:
        return run_study(study, options.jobs, display(options.quiet), cluster)
    except KeyboardInterrupt:  # before the first run, or the second Ctrl-C: typer would exit without a message
        kept = f"stored evaluations are kept in {study.path}: run the same command to resume"
        print(f"stopped at once; {kept if study.path.exists() else 'nothing was stored'}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
