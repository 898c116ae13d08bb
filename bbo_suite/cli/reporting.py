"""`report` and `site`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .app import Plugins, Quiet, Results, StudyName, app


@app.command()
def report(
    study: StudyName,
    results: Results = Path("results"),
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to write (default: report.html in the study's folder)."),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="STUDY", help="Another study to compare with: its name or its folder.")
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Write a study's results, statistical tests, figures and limits as one HTML page, and print its path."""
    from ..report import write
    from .tables import reserved

    with reserved(True):  # problems may print
        path = write(study, results, out, compare, plugin or ())
    print(path)


@app.command()
def site(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write to.")],
    results: Results = Path("results"),
    plugin: Plugins = None,
    quiet: Quiet = False,
) -> None:
    """Write all studies as a static site, and print its first page: leaderboards, reports, and numbers as files."""
    from ..site import number_of_studies, write
    from .progress import counted
    from .tables import reserved

    complaints: list[str] = []
    total = number_of_studies(results)
    with reserved(True), counted("writing", total, quiet, "studies") as shown:  # problems may print
        path = write(results, out, plugin or (), complaints, shown)
        shown(total, "done")
    for complaint in complaints:
        print(f"left out: {complaint}", file=sys.stderr)
    print(path)
