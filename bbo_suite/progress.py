"""What a person sees while runs go on, read from the runs' files alone."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .store import END, ROWS
from .study import PlannedRun

REFRESH_SECONDS, PLAIN_SECONDS = 0.25, 30.0


@dataclass
class Watched:
    """How far one run is; `look` reads only what was added since the last look."""

    planned: PlannedRun
    evaluations: int = 0
    best: float = math.inf
    ended: bool = False
    since: float = 0.0
    already: int = 0
    _offset: int = 0
    _file: Path = field(init=False)

    def __post_init__(self) -> None:
        self._file = self.planned.path / ROWS
        self.look()
        self.already = self.evaluations

    @property
    def label(self) -> str:
        """The run in words."""
        run = self.planned.run
        return f"{run.strategy} on {run.problem}, seed {run.seed}"

    @property
    def speedup(self) -> str:
        """The best speedup over the default so far."""
        return f"{self.planned.facts['default'] / self.best:.3f}x" if 0 < self.best < math.inf else "-"

    @property
    def active(self) -> bool:
        """Is the run going on, as far as its files tell?"""
        return self.evaluations > self.already and not self.ended

    @property
    def seconds_left(self) -> float | None:
        """The time left at the pace so far; None before there is a pace."""
        done = self.evaluations - self.already
        left = self.planned.run.budget - self.evaluations
        return (time.monotonic() - self.since) / done * left if done else None

    def look(self) -> None:
        """Read the rows that have come."""
        self.ended = (self.planned.path / END).exists()
        if not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        data = data[: data.rfind(b"\n") + 1]
        self.since = self.since or time.monotonic()
        self._offset += len(data)
        values = [line.split(b",", 3)[2] for line in data.splitlines() if line[:1].isdigit()]
        self.evaluations += len(values)
        self.best = min([self.best, *map(float, values)])


@contextmanager
def preparing(problems: Sequence[str], quiet: bool) -> Iterator[None]:
    """Say on standard error what happens before the first evaluations."""
    text = f"loading {', '.join(problems[:3])}{' ...' if len(problems) > 3 else ''} and evaluating the default"
    text += " (the first time on a machine this compiles code for up to a minute)"
    if quiet:
        yield
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status(text):
            yield
    else:
        print(text, file=sys.stderr, flush=True)
        yield


@contextmanager
def shown(plan: Sequence[PlannedRun], quiet: bool) -> Iterator[None]:
    """Show the progress of the runs on standard error until the block ends: live lines, or plain ones for a file."""
    if quiet:
        yield
        return
    runs = [Watched(planned) for planned in plan]
    done = threading.Event()
    show = _live if sys.stderr.isatty() else _plain
    thread = threading.Thread(target=show, args=(runs, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _plain(runs: list[Watched], done: threading.Event) -> None:
    while not done.wait(PLAIN_SECONDS):
        for run in runs:
            run.look()
            if run.active:
                print(_line(run), file=sys.stderr, flush=True)


def _line(run: Watched) -> str:
    left = "?" if run.seconds_left is None else f"{run.seconds_left:,.0f} s"
    count = f"{run.evaluations:,}/{run.planned.run.budget:,}"
    return f"{run.label}: {count} evaluations, best {run.speedup}, {left} left"


def _live(runs: list[Watched], done: threading.Event) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        total = progress.add_task("runs", total=len(runs), note="")
        lines = {id(r): progress.add_task(r.label, total=r.planned.run.budget, visible=False, note="") for r in runs}
        finished = False
        while not finished:
            finished = done.wait(REFRESH_SECONDS)
            for run in runs:
                run.look()
                note = f"best {run.speedup}" + ("" if run.seconds_left is None else f", {run.seconds_left:,.0f} s left")
                progress.update(lines[id(run)], completed=run.evaluations, visible=run.active, note=note)
            progress.update(total, completed=sum(run.ended for run in runs))
            progress.refresh()
