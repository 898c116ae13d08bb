"""`site`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .app import Plugins, Results, app


@app.command()
def site(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write to.")],
    results: Results = Path("results"),
    plugin: Plugins = None,
) -> None:
    """Write all studies as a static site, and print its first page: leaderboards, reports, and numbers as files."""
    from ..site import write
    from .tables import reserved

    complaints: list[str] = []
    with reserved(True):  # problems may print
        path = write(results, out, plugin or (), complaints)
    for complaint in complaints:
        print(f"left out: {complaint}", file=sys.stderr)
    print(path)
