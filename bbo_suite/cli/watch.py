"""`watch`: the progress of a study as its files show it; and all studies of a folder in numbers."""

from __future__ import annotations

import io
import statistics
import tempfile
import time
import webbrowser
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from ..core.quantities import duration, ratio_text, with_noun
from ..errors import UserError
from ..files.writing import write_text
from ..store.folders import END, PLANNED, ROWS, STUDY, has_runs, runs_in, study_path
from ..store.plan import RunName, read_planned, stored_settings
from .app import AsJson, Results, StudyName, app, json_line
from .run_view import RunState, RunView, head_of
from .tables import console, escape

if TYPE_CHECKING:
    from rich.console import Console

WINDOW_SECONDS, ENOUGH_SECONDS = 60.0, 5.0
"""The speed is measured over a window of this length, once the second number of seconds has passed."""
MOST_RUNS = 12
"""The most runs that get a line of their own; runs without new rows for the longest time come first."""
WIDE = 160
"""Width in characters where there is no terminal."""
REFRESH_SECONDS = 1.0
_LEFT = "stopped watching; the runs are not affected"
_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>bbo_suite</title>{again}'
    "<body>{text}{curves}</body></html>"
)


def studies(results: Path) -> Iterator[dict[str, Any]]:
    """Yield name, problems, strategies, runs, finished runs, budget and last change of each study, by name."""
    for path in sorted(results.glob("*")):
        if (path / STUDY).exists() or has_runs(path):
            yield _study(path)


def _study(path: Path) -> dict[str, Any]:
    runs = known_runs(path)
    return {
        "study": path.name,
        "problems": list(dict.fromkeys(run.problem for run in runs.values())),
        "strategies": list(dict.fromkeys(run.strategy for run in runs.values())),
        "runs": len(runs),
        "done": sum((path / folder / END).exists() for folder in runs),
        "budget": _budget(path),
        "changed": _last_change(path),
    }


def known_runs(study: Path) -> dict[str, RunName]:
    """Return by folder the runs that a study lists, and those in it that older versions did not list."""
    found = {run.folder: run for run in read_planned(study)}
    for path in runs_in(study):
        if path.name not in found:
            head = head_of(path)
            found[path.name] = RunName(*(head.get(field, "?") for field in RunName._fields))
    return found


def _budget(path: Path) -> int | None:
    """Return the budget that all runs of a study share; None if its file is missing, damaged or cannot be read."""
    try:
        return stored_settings(path).get("budget")
    except UserError:
        return None


def _last_change(path: Path) -> str:
    """Return when the last row was stored, in UTC."""
    times = [file.stat().st_mtime for file in path.glob(f"*/{ROWS}")] or [path.stat().st_mtime]
    return datetime.fromtimestamp(max(times), UTC).isoformat(timespec="seconds")


class StudyView:
    """All runs that a study lists or holds; `refresh` reads what was added.

    Raises:
      UserError: there is no such study.
    """

    def __init__(self, study: str, results: Path) -> None:
        self.path = results / study
        if not has_runs(self.path) and not (self.path / STUDY).exists():
            study_path(study, results)
        self._budget = _budget(self.path) or 0
        self._views: dict[str, RunView] = {}
        self._signature: object = None
        self._history: deque[tuple[float, int, float]] = deque()

    @property
    def runs(self) -> list[RunView]:
        """Every run, in the order of the plan."""
        return list(self._views.values())

    def refresh(self) -> None:
        """Read what was added."""
        self._list_runs()
        before = {folder: view.evaluations for folder, view in self._views.items()}
        for view in self._views.values():
            view.refresh()
        grown = [(view.evaluations - before[folder], view.pace or 0.0) for folder, view in self._views.items()]
        last = self._history[-1] if self._history else (0.0, 0, 0.0)
        first = not self._history  # rows from before say nothing about the speed
        done = 0 if first else sum(count for count, _ in grown)
        work = 0.0 if first else sum(count * pace for count, pace in grown)
        self._history.append((time.monotonic(), last[1] + done, last[2] + work))
        while self._history[-1][0] - self._history[0][0] > WINDOW_SECONDS:
            self._history.popleft()

    def _list_runs(self) -> None:
        """List the runs again if the plan or the folder has changed: a study may grow."""
        signature = [_changed(self.path / PLANNED), _changed(self.path)]
        if signature == self._signature:
            return
        self._signature = signature
        for folder, name in known_runs(self.path).items():
            self._views.setdefault(folder, RunView(self.path / folder, name, self._budget))

    def facts(self) -> dict[str, Any]:
        """Return the progress as plain data: of the study, and of each run; null where something is unknown."""
        return {
            "study": self.path.name,
            **{state.value: self.counts[state] for state in RunState},
            "over": self.over,
            "seconds_left": 0.0 if self.over else self.seconds_left,
            "runs": [view.facts() for view in self.runs],
        }

    @property
    def counts(self) -> Counter[RunState]:
        """The number of runs in each state."""
        return Counter(view.state for view in self.runs)

    @property
    def stopped(self) -> bool:
        """True if the user stopped a run and none is running, so that those that wait will not start either."""
        counts = self.counts
        return bool(counts[RunState.STOPPED]) and not counts[RunState.RUNNING] + counts[RunState.SILENT]

    @property
    def over(self) -> bool:
        """True if nothing is left to wait for; False while problems are loaded, before runs are listed."""
        done = all(view.state in (RunState.DONE, RunState.FAILED) for view in self.runs)
        return bool(self._views) and (done or self.stopped)

    def _measured(self) -> tuple[float, float] | None:
        """Return evaluations, and seconds of their work, done per second; None before enough was seen."""
        (start, first, begun), (now, last, worked) = self._history[0], self._history[-1]
        seconds = now - start
        return ((last - first) / seconds, (worked - begun) / seconds) if seconds > ENOUGH_SECONDS else None

    @property
    def rate(self) -> float:
        """Evaluations per second: as seen recently, or at first by the seconds stored with the rows."""
        measured = self._measured()
        running = (view.pace for view in self.runs if view.state is RunState.RUNNING)
        return measured[0] if measured else sum(1 / pace for pace in running if pace)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until all is done, at the pace of each strategy on each problem; None if nothing is running."""
        measured, running = self._measured(), [view for view in self.runs if view.state is RunState.RUNNING]
        return seconds_left(self.runs, running, measured[1] if measured else len(running))


def seconds_left(runs: Iterable[RunView], running: Iterable[RunView], speed: float) -> float | None:
    """Return the seconds until all runs are done, at the pace of each strategy on each problem; None if unknown.

    Args:
      runs: all runs, those that are done included: they tell the pace of others.
      running: those that run now.
      speed: seconds of the runs' work that are done in a second; without measurement, the number of running runs.
    """
    runs = list(runs)
    paces = _Paces(runs)
    left = [paces.seconds_left(view) for view in runs if not (view.ended or view.failed)]
    known = [seconds for seconds in left if seconds is not None]
    if not speed or not known:
        return None
    longest = max((seconds for view in running if (seconds := paces.seconds_left(view))), default=0.0)
    return max(sum(known) / speed, longest)


class _Paces:
    """Seconds per evaluation: of the run, else of its strategy on its problem, else of its strategy, else of all."""

    def __init__(self, runs: Iterable[RunView]) -> None:
        known: dict[object, list[float]] = {}
        for view in runs:
            for kind in ((view.name.strategy, view.name.problem), view.name.strategy, None):
                known.setdefault(kind, []).extend([view.pace] if view.pace else [])
        self._means = {kind: statistics.fmean(paces) for kind, paces in known.items() if paces}

    def seconds_left(self, view: RunView) -> float | None:
        kinds = ((view.name.strategy, view.name.problem), view.name.strategy, None)
        pace = view.pace or next((self._means[kind] for kind in kinds if kind in self._means), None)
        return None if pace is None else pace * (view.budget - view.evaluations)


def _changed(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def screen(view: StudyView) -> RenderableType:
    """Return what `watch` shows."""
    runs, counts = view.runs, view.counts
    if not runs:
        return f"{escape(view.path.name)}: no run has started yet; the problems are being loaded"
    done, budget = sum(run.evaluations for run in runs), sum(map(_planned, runs))
    states = ", ".join(f"{counts[state]:,} {state.value}" for state in reversed(RunState) if counts[state])
    pace = f"{view.rate:,.0f} a second, {duration(view.seconds_left)} left"
    progress = "; stopped: run the same command to resume" if view.stopped else "" if view.over else f", {pace}"
    return Group(
        f"{escape(view.path.name)}: {with_noun(len(runs), 'run')}: {states}",
        f"{done:,}/{budget:,} evaluations ({done / max(1, budget):.0%}){progress}",
        _best(runs),
        "best over all seeds so far: cost of the default / best cost; higher is better",
        *_lines(runs),
        *_outlooks(view),
    )


def _outlooks(view: StudyView) -> Iterator[str]:
    """Yield what more evaluations would bring, once a study is over."""
    if view.over:
        from ..forecast import published

        begun = ((run.name, run.curve) for run in view.runs if not run.failed)
        known = ((name.problem, name.strategy, curve) for name, curve in begun if curve)
        yield from map(escape, published().outlooks(known))


def _planned(run: RunView) -> int:
    """Return the run's final number of evaluations; a run may end before its budget is spent."""
    return run.evaluations if run.ended else run.budget


def _best(runs: list[RunView]) -> Table:
    problems = dict.fromkeys(run.name.problem for run in runs)
    strategies = dict.fromkeys(run.name.strategy for run in runs)
    found: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        found.setdefault(run.name[:2], []).extend([] if run.speedup is None else [run.speedup])
    table = Table()
    table.add_column("problem", overflow="fold")
    table.add_column("done", justify="right", no_wrap=True)
    for strategy in strategies:
        table.add_column(escape(strategy), justify="right", overflow="fold")
    for problem in problems:
        states = [run.state is RunState.DONE for run in runs if run.name.problem == problem]
        cells = (found.get((problem, strategy)) for strategy in strategies)
        table.add_row(
            escape(problem),
            f"{sum(states)}/{len(states)}",
            *(ratio_text(max(cell) if cell else None) for cell in cells),
        )
    return table


def _lines(runs: list[RunView]) -> Iterator[str]:
    shown = [run for run in runs if run.state in (RunState.FAILED, RunState.SILENT, RunState.RUNNING)]
    shown.sort(key=lambda run: (run.state is not RunState.FAILED, -run.silence))
    for run in shown[:MOST_RUNS]:
        yield f"{escape(run.name.label)}: {run.evaluations:,}/{run.budget:,}, {_doing(run)}"
    if len(shown) > MOST_RUNS:
        yield f"... and {len(shown) - MOST_RUNS:,} more runs"


def _doing(run: RunView) -> str:
    best = "" if run.speedup is None else f"best {ratio_text(run.speedup)}, "
    if run.state is RunState.FAILED:
        return f"failed: see {escape(str(run.path / 'error.txt'))}"
    if run.state is RunState.SILENT:
        return f"{best}no new rows for {duration(run.silence)}"
    if run.pairs:
        return f"{best}{run.pairs:,} pairs measured again"
    left = f"{best}{duration(None if run.pace is None else run.pace * (run.budget - run.evaluations))} left"
    return ", ".join(filter(None, (left, _whole(run))))


def _whole(run: RunView) -> str:
    """Return what the rest of a run is expected to bring; nothing if nobody can say."""
    from ..forecast import FARTHEST, LEAST, published, would_reach

    curve = run.curve if run.evaluations >= LEAST else None
    if curve is None or not run.evaluations < run.budget < min(curve.candidates, FARTHEST * run.evaluations + 1):
        return ""
    made = published().narrow([curve], [run.budget])
    return would_reach(made, curve.unit) if made else ""


@app.command()
def watch(
    study: StudyName,
    results: Results = Path("results"),
    once: Annotated[
        bool, typer.Option("--once", help="Print the status once and exit (default when output is not a terminal).")
    ] = False,
    browser: Annotated[
        bool, typer.Option("--browser", help="Show it with curves, as a page that reloads itself in the browser.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a study until all runs are done, on any machine that can read its files."""
    if browser and (once or as_json):
        raise UserError("--browser shows a page until all runs are done; leave out --once and --json")
    view, here = StudyView(study, results), console(highlight=False)
    view.refresh()
    if as_json:
        print(json_line(view.facts()))
        return
    if browser:
        _in_browser(view, Path(tempfile.mkdtemp(prefix="bbo_suite-watch-")) / "watch.html")
        return
    if once or not here.is_terminal:
        here.width = here.width if here.is_terminal else WIDE
        here.print(screen(view))
        return
    _live(view, here)


def _live(view: StudyView, here: Console) -> None:
    from rich.live import Live

    try:
        with Live(screen(view), console=here, auto_refresh=False) as live:
            _until_over(view, lambda: live.update(screen(view), refresh=True))
    except KeyboardInterrupt:
        here.show_cursor()  # rich does not when interrupted while it draws the first screen
        here.print(_LEFT)


def _until_over(view: StudyView, show: Callable[[], None]) -> None:
    while not view.over:
        started = time.monotonic()
        view.refresh()
        show()
        time.sleep(max(REFRESH_SECONDS, 4 * (time.monotonic() - started)))  # never more than a fifth of a core


def _in_browser(view: StudyView, file: Path) -> None:
    """Write the page again and again, and open it once; the last one stays, and does not reload."""
    write_text(file, page(view))
    opened = webbrowser.open(file.as_uri())
    print(f"{file}: {'open in the browser' if opened else 'open this page in a browser'}; Ctrl-C ends watching")
    try:
        _until_over(view, lambda: write_text(file, page(view)))
    except KeyboardInterrupt:
        print(_LEFT)


def page(view: StudyView) -> str:
    """Return what `watch` shows as HTML, and below it the curves; until all is done, it reloads itself."""
    from rich.console import Console

    record = Console(record=True, file=io.StringIO(), width=WIDE, highlight=False)
    record.print(screen(view))
    again = "" if view.over else f'<meta http-equiv="refresh" content="{2 * REFRESH_SECONDS:g}">'
    code = '<pre style="font:14px/1.3 monospace">{code}</pre>'
    return _PAGE.format(
        again=again, text=record.export_html(inline_styles=True, code_format=code), curves=_curves(view)
    )


def _curves(view: StudyView) -> str:
    """Return the curves of the first problems as SVG; nothing before there are rows."""
    from ..figures.interactive import svg
    from ..figures.study_figure import FIGURES
    from ..store.frames import load

    if not any(run.evaluations for run in view.runs):
        return ""
    _, figure, _ = next(FIGURES["convergence"].pages(load(view.path.name, view.path.parent), most=1))
    return svg(figure)
