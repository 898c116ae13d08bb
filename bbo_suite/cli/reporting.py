"""`report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import Plugins, Results, StudyName, app


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
