"""`watch`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .app import AsJson, Results, StudyName, app, json_line

if TYPE_CHECKING:
    from rich.console import Console

    from ..store.study_view import StudyView

REFRESH_SECONDS = 1.0


@app.command()
def watch(
    study: StudyName,
    results: Results = Path("results"),
    once: Annotated[
        bool, typer.Option("--once", help="Print the status once and exit (default when output is not a terminal).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a study until all runs are done, on any machine that can read its files."""
    from rich.console import Console

    from ..store.study_view import StudyView
    from .screens import WIDE, screen

    view, here = StudyView(study, results), Console(highlight=False)
    view.refresh()
    if as_json:
        print(json_line(view.facts()))
        return
    if once or not here.is_terminal:
        here.width = here.width if here.is_terminal else WIDE
        here.print(screen(view))
        return
    try:
        _live(view, here)
    except KeyboardInterrupt:
        here.show_cursor()  # rich does not when interrupted while it draws the first screen
        here.print("stopped watching; the runs are not affected")


def _live(view: StudyView, here: Console) -> None:
    from rich.live import Live

    from .screens import screen

    with Live(screen(view), console=here, auto_refresh=False) as live:
        while not view.over:
            started = time.monotonic()
            view.refresh()
            live.update(screen(view), refresh=True)
            time.sleep(max(REFRESH_SECONDS, 4 * (time.monotonic() - started)))  # never more than a fifth of a core
