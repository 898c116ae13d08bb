"""`score`: the place of a strategy among all published ones on the reference list."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from .app import INTERRUPTED, Quiet, Results, app, count_option

if TYPE_CHECKING:
    from ..board.standing import Standing
    from ..runs.study_plan import StudyPlan


@app.command()
def score(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Python file with a strategy.")],
    results: Results = Path("results"),
    jobs: Annotated[int | None, count_option("Parallel runs, one process each (default: number of cores).")] = None,
    quiet: Quiet = False,
) -> None:
    """Run a strategy on the reference list, say its rank among published ones, and write its score file.

    The same command again resumes. The file, RESULTS/board/NAME-runs.csv, and the source are what a board takes.
    """
    import pandas as pd

    from ..board.reference import reference_list
    from ..board.score_file import END, read, studies, write
    from ..board.standing import KEPT, published, standings
    from ..core.strategy import Strategy
    from ..plugins import classes_of
    from ..registry import Registry

    if not classes_of(file, Strategy):
        raise UserError(f"{file} has no strategy; add a subclass of bbo_suite.Strategy")
    registry, listed, strategy = Registry((file,)), reference_list(), file.stem
    listed.check_here(registry)
    planned = studies(registry, strategy, listed, results)
    for number, study in enumerate(planned):
        what = "a first run" if not number else f"part {number} of {len(planned) - 1}"
        print(f"reference list {listed.version}, {what}: {len(study.runs)} runs", file=sys.stderr)
        _make(study, jobs, quiet)
    out = results / "board" / f"{strategy}{END}"
    write(out, planned, registry, strategy, listed)
    own, others = read(out, listed)[KEPT], published()
    _print(standings(pd.concat([others[others["strategy"] != strategy], own]), listed), strategy)
    print(out)


def _make(study: StudyPlan, jobs: int | None, quiet: bool) -> None:
    """Make the runs of a study; the first one that fails ends the command."""
    from ..runs.runner import run_study
    from .progress import display

    outcome = run_study(study, jobs, display(quiet))
    if outcome.errors:
        raise UserError(outcome.errors[0])
    if outcome.stopped:
        print("stopped; everything is stored: run the same command to resume", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)


def _print(found: Sequence[Standing], strategy: str) -> None:
    from rich.table import Table

    from ..core.level import explained
    from .tables import escape, wide_console

    columns = ["evaluations", "rank (95 %)", "strategy", "share of the best known gain (95 %)", "simulated", "real"]
    marks = explained({each.level for each in found})
    table = Table(*columns, caption=f"mean over runs, tasks and families; 1 is the best known; {marks}")
    budget = found[0].budget
    for each in found:
        if each.budget != budget:
            budget = each.budget
            table.add_section()
        style = "bold" if each.strategy == strategy else None
        table.add_row(*map(escape, cells(each)), style=style)
    wide_console().print(table)
    for each in found:
        if each.strategy == strategy:
            print(sentence(each))


def cells(each: Standing) -> list[str]:
    """Return a standing as text: evaluations, rank, strategy, share, and the shares of the two halves."""
    rank, first, last = each.rank
    share, low, high = each.share
    halves = [f"{half:.2f}" if half == half else "–" for half in (each.simulated, each.real)]
    place = f"{rank} ({first} to {last})"
    return [
        f"{each.budget:,}",
        place,
        each.level.marked(each.strategy),
        f"{share:.2f} ({low:.2f} to {high:.2f})",
        *halves,
    ]


def sentence(each: Standing) -> str:
    """Return a standing in words."""
    rank, first, last = each.rank
    place, peers = each.among
    spread = f"{first}" if first == last else f"{first} to {last}"
    known = "" if peers == each.strategies else f"; {place} of {peers} that know no more"
    return f"after {each.budget:,} evaluations: rank {rank} of {each.strategies} (95 %: {spread}){known}"
