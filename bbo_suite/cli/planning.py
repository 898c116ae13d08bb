"""`plan`."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from ..errors import UserError
from .app import AsLines, app, json_line
from .study_options import StudyOptions, takes_study


@app.command()
@takes_study
def plan(
    options: StudyOptions,
    as_list: Annotated[bool, typer.Option("--list", help="Print one command per run, for a batch system.")] = False,
    as_json: AsLines = False,
) -> None:
    """Check the options of `run`, and show the amount of work and how long it will take. Nothing is stored."""
    from ..runs.processes import default_jobs
    from ..runs.workload import workload
    from .progress import display
    from .tables import plan_table, reserved

    if as_list and options.only:
        raise UserError("--list divides the runs itself; leave out --only")
    with reserved(as_json or as_list):
        study = options.to_study()
        with display(options.quiet).preparing(study.problems):
            planned = study.prepare()
            items = [] if as_list else list(workload(study, planned))
    command = shlex.join(["python", "-m", "bbo_suite", "run", *options.to_arguments()])
    for number in range(len(planned) if as_list else 0):
        print(f"{command} --only {number + 1}/{len(planned)}")
    for item in items if as_json else ():
        print(json_line(item))
    if not (as_list or as_json):
        plan_table(items, options.jobs or default_jobs(len(planned)))
