"""The progress of a study as its files show it: how many runs are done, its speed, and the time left."""

from __future__ import annotations

import statistics
import time
from collections import Counter, deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .folders import PLANNED, STUDY, study_path
from .run_view import RunState, RunView, read_object
from .study_list import known_runs

WINDOW_SECONDS, ENOUGH_SECONDS = 60.0, 5.0
"""The speed is measured over a window of this length, once the second number of seconds has passed."""


class StudyView:
    """All runs that a study lists or holds; `refresh` reads what was added.

    Raises:
      UserError: there is no such study.
    """

    def __init__(self, study: str, results: Path) -> None:
        self.path = results / study
        if not (self.path / STUDY).exists():
            study_path(study, results)
        self._budget = read_object(self.path / STUDY).get("budget", 0)
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
