"""`plan`."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from ..errors import UserError
from .app import AsLines, app, strict
from .study_options import StudyOptions, takes_study


@app.command()
@takes_study
def plan(
    options: StudyOptions,
    as_list: Annotated[bool, typer.Option("--list", help="Print a command a run, for a batch system.")] = False,
    as_json: AsLines = False,
) -> None:
    """Check what `run` with the same options would do, and say how much it is; nothing is run or written."""
    from ..runs.workload import workload
    from .progress import display
    from .tables import plan_table, reserved

    if as_list and options.only:
        raise UserError("--list makes the shares itself; leave out --only")
    with reserved(as_json or as_list):
        study = options.made()
        with display(options.quiet).preparing(study.problems):
            planned = study.prepare()
    command = shlex.join(["python", "-m", "bbo_suite", "run", *options.words()])
    for number in range(len(planned) if as_list else 0):
        print(f"{command} --only {number + 1}/{len(planned)}")
    for item in workload(study, planned) if as_json else ():
        print(strict(item))
    if not (as_list or as_json):
        plan_table(list(workload(study, planned)))
