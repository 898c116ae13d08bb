"""The progress of the runs of a command, read from the files of the runs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import typer

from ..core.quantities import duration
from ..errors import UserError
from ..runs.runner import Display, run_study
from ..runs.study_plan import PlannedRun, StudyPlan
from .app import INTERRUPTED
from .run_view import RunView
from .watch import seconds_left

REFRESH_SECONDS, PLAIN_SECONDS = 0.25, 30.0


class WatchedRun(RunView):
    """A run of this command.

    Attributes:
      already: evaluations that were stored before this command.
      over: True once the run has finished, successfully or not.
    """

    def __init__(self, planned: PlannedRun) -> None:
        run = planned.run
        super().__init__(planned.path, planned.name, run.budget, planned.facts["default"])
        self.planned, self.over = planned, False
        self.refresh()
        self.already = self.evaluations

    @property
    def active(self) -> bool:
        """True if the run has new rows and has not finished."""
        return self.evaluations > self.already and not self.ended and not self.over


def display(quiet: bool) -> Display:
    """Return the display of a study's progress; it shows nothing if quiet."""
    return Display() if quiet else StandardError()


def make(study: StudyPlan, jobs: int | None, quiet: bool) -> None:
    """Make the runs of a study, or what is left of them; a failure or Ctrl-C ends the command.

    Raises:
      UserError: a run failed, or something is wrong with a setting.
    """
    outcome = run_study(study, jobs, display(quiet))
    if outcome.errors:
        raise UserError(outcome.errors[0])
    if outcome.stopped:
        print("stopped; everything is stored: run the same command to resume", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)


def is_live() -> bool:
    """Return True where lines can be redrawn: in a terminal, and in a notebook that has ipywidgets."""
    return sys.stderr.isatty() or (in_notebook() and find_spec("ipywidgets") is not None)


def in_notebook() -> bool:
    """Return True in a notebook's process."""
    return "ipykernel" in sys.modules


class StandardError(Display):
    """Shows progress on standard error: live lines in a terminal or a notebook, plain lines in a file."""

    @contextmanager
    def preparing(self, problems: Sequence[str]) -> Iterator[None]:
        """Show, until the block ends, that these problems are loaded and their defaults evaluated."""
        from .tables import console, escape

        text = f"loading {', '.join(problems[:3])}{' ...' if len(problems) > 3 else ''} and evaluating the default"
        text += " (the first time on a machine this compiles code for up to a minute)"
        if is_live():
            with console(error=True).status(escape(text)):
                yield
        else:
            print(text, file=sys.stderr, flush=True)
            yield

    @contextmanager
    def running(self, plan: Sequence[PlannedRun]) -> Iterator[Callable[[Path], None]]:
        """Show the progress of the runs until the block ends; see `Display.running`."""
        runs = {planned.path: WatchedRun(planned) for planned in plan}

        def over(path: Path) -> None:
            runs[path].over = True

        done = threading.Event()
        show = _live if is_live() else _plain
        thread = threading.Thread(target=show, args=(list(runs.values()), done), daemon=True)
        thread.start()
        try:
            yield over
        finally:
            done.set()
            thread.join()


class Counted(Protocol):
    """Shows how far a command is."""

    def __call__(self, done: int, words: str, of: int = ..., /) -> None:
        """Show a count and what is done next."""


@contextmanager
def counted(what: str, total: int, quiet: bool, unit: str = "evaluations") -> Iterator[Counted]:
    """Show a progress bar on standard error.

    Yields a function of the count so far, a short description, and the total where that becomes known later.
    """
    from rich.progress import Progress

    from .tables import console

    terminal, printed_at = sys.stderr.isatty(), 0.0
    with Progress(console=console(error=True), transient=True, disable=quiet or not terminal) as bar:
        task = bar.add_task(what, total=total)

        def show(done: int, words: str, of: int = total) -> None:
            nonlocal printed_at, total
            total = max(total, of)
            bar.update(task, completed=done, description=words, total=total)
            if not quiet and not terminal and (done == total or time.monotonic() - printed_at > PLAIN_SECONDS):
                printed_at = time.monotonic()
                print(f"{what}: {done:,}/{total:,} {unit}, {words}", file=sys.stderr, flush=True)

        yield show


def _plain(runs: list[WatchedRun], done: threading.Event) -> None:
    while not done.wait(PLAIN_SECONDS):
        for run in runs:
            run.refresh()
        for line in (_total(runs), *(_line(run) for run in runs if run.active)):
            print(line, file=sys.stderr, flush=True)


def _line(run: WatchedRun) -> str:
    return f"{run.name.label}: {run.evaluations:,}/{run.budget:,} evaluations, best {_best(run)}{_again(run)}"


def _again(run: WatchedRun) -> str:
    return f", {run.pairs:,} pairs measured again" if run.pairs else ""


def _best(run: WatchedRun) -> str:
    return "-" if run.speedup is None else f"{run.speedup:.3f}x" if run.best else "cost 0"


def _total(runs: Sequence[WatchedRun]) -> str:
    """Return how many runs are done, and the time until all are."""
    over, active = sum(run.ended or run.over for run in runs), [run for run in runs if run.active]
    left = seconds_left(runs, active, len(active))
    return f"{over:,}/{len(runs):,} runs" + ("" if left is None else f", {duration(left)} left for all")


def _live(runs: list[WatchedRun], done: threading.Event) -> None:
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    from .tables import console

    # numbers first and names last, so that a narrow terminal cuts off the names
    line = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
    here = console(error=True)
    columns = (BarColumn(20), line) if here.width >= 80 else (line,)
    with Progress(*columns, console=here, transient=True, auto_refresh=False) as progress:
        total = progress.add_task("", total=len(runs))
        lines = [progress.add_task("", total=run.budget, visible=False) for run in runs]
        finished = False
        while not finished:
            finished = done.wait(REFRESH_SECONDS)
            for run, task in zip(runs, lines, strict=True):
                run.refresh()
                progress.update(task, completed=run.evaluations, visible=run.active, description=_live_line(run))
            over = sum(run.ended or run.over for run in runs)
            progress.update(total, completed=over, description=_total(runs))
            progress.refresh()


def _live_line(run: WatchedRun) -> str:
    return f"{run.evaluations:,}/{run.budget:,}  {_best(run)}{_again(run)}  {run.name.label}"
