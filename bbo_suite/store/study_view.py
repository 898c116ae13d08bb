"""A study as its files show it: how many runs are done, how fast it goes, and what is left."""

from __future__ import annotations

import statistics
import time
from collections import Counter, deque
from collections.abc import Iterable
from pathlib import Path

from .frames import study_path
from .identity import RUN
from .plan import PLANNED, STUDY, RunName, read_planned
from .run_view import RunView, State, read_object

WINDOW_SECONDS, ENOUGH_SECONDS = 60.0, 5.0


class StudyView:
    """All runs that a study lists or holds; `look` reads what was added.

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

    def look(self) -> None:
        """Read what was added."""
        self._list()
        before = {folder: view.evaluations for folder, view in self._views.items()}
        for view in self._views.values():
            view.look()
        grown = [(view.evaluations - before[folder], view.pace or 0.0) for folder, view in self._views.items()]
        last = self._history[-1] if self._history else (0.0, 0, 0.0)
        first = not self._history  # what is there already says nothing of the speed
        done = 0 if first else sum(count for count, _ in grown)
        work = 0.0 if first else sum(count * pace for count, pace in grown)
        self._history.append((time.monotonic(), last[1] + done, last[2] + work))
        while self._history[-1][0] - self._history[0][0] > WINDOW_SECONDS:
            self._history.popleft()

    def _list(self) -> None:
        """List the runs anew if the plan or the folder has changed: a study may grow."""
        signature = [_changed(self.path / PLANNED), _changed(self.path)]
        if signature == self._signature:
            return
        self._signature = signature
        for name in read_planned(self.path):
            self._views.setdefault(name.folder, RunView(self.path / name.folder, name, self._budget))
        for head in self.path.glob(f"*/{RUN}"):  # of a time when nothing was listed
            if head.parent.name not in self._views:
                facts = read_object(head)
                name = RunName(*(facts.get(field, "?") for field in RunName._fields))
                self._views[head.parent.name] = RunView(head.parent, name, self._budget)

    @property
    def counts(self) -> Counter[State]:
        """How many runs are in each state."""
        return Counter(view.state for view in self.runs)

    @property
    def over(self) -> bool:
        """Is nothing left to be done? Before the runs are listed, problems are loaded."""
        return bool(self._views) and all(view.state in (State.DONE, State.FAILED) for view in self.runs)

    def _measured(self) -> tuple[float, float] | None:
        """Return evaluations, and seconds of their work, done in a second; None before something was seen to be."""
        (start, first, begun), (now, last, worked) = self._history[0], self._history[-1]
        seconds = now - start
        return ((last - first) / seconds, (worked - begun) / seconds) if seconds > ENOUGH_SECONDS else None

    @property
    def rate(self) -> float:
        """Evaluations a second: as seen of late, or at first by the seconds that are stored with them."""
        measured = self._measured()
        running = (view.pace for view in self.runs if view.state is State.RUNNING)
        return measured[0] if measured else sum(1 / pace for pace in running if pace)

    @property
    def seconds_left(self) -> float | None:
        """The time that what is left takes at the pace of each strategy on each problem; None if nothing goes on."""
        measured, running = self._measured(), [view for view in self.runs if view.state is State.RUNNING]
        speed = measured[1] if measured else len(running)
        paces = _Paces(self.runs)
        left = [paces.seconds_left(view) for view in self.runs if not (view.ended or view.failed)]
        known = [seconds for seconds in left if seconds is not None]
        if not speed or not known:
            return None
        longest = max((seconds for view in running if (seconds := paces.seconds_left(view))), default=0.0)
        return max(sum(known) / speed, longest)


class _Paces:
    """What an evaluation takes, by what is known of the run, of its like, or of its strategy."""

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
