"""One run as its files show it, to any process on any machine, while it is written and after."""

from __future__ import annotations

import enum
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from .identity import RUN
from .plan import RunName
from .rows import ROWS
from .run_folder import END, ERROR

SILENT_SECONDS = 60.0
"""A run that has written nothing for so long is called silent: a slow batch, or a process that is gone."""
_TAIL, _SAMPLE, _FIELDS = 1 << 16, 500, 200
_COMMA, _NEWLINE = b",\n"


class State(enum.Enum):
    """How far a run is."""

    WAITING, RUNNING, SILENT, FAILED, DONE = "waiting", "running", "silent", "failed", "done"


class RunView:
    """A run that is read only as far as it has grown since the last `look`; of one that is done only the end.

    Attributes:
      evaluations, best: stored so far.
      budget: of the run.
      default: the default's cost; None before the run has begun.
      pace: seconds that an evaluation takes on average, the strategy's included; None before there is one.
      ended: is `end.json` there, and every row that it counts?
      failed: did the last attempt end with an error?
    """

    def __init__(self, path: Path, name: RunName, budget: int, default: float | None = None) -> None:
        self.path, self.name, self.budget, self.default = path, name, budget, default
        self._forget()
        self.ended = self.failed = False
        self.pace: float | None = None
        self._seen: tuple[int, int] | None = None
        self._grew = -math.inf

    def _forget(self) -> None:
        self.evaluations, self.best, self._offset, self._seconds = 0, math.inf, 0, 0.0

    @property
    def speedup(self) -> float | None:
        """The best speedup over the default so far."""
        return self.default / self.best if self.default and 0 < self.best < math.inf else None

    @property
    def silence(self) -> float:
        """Seconds since the run last wrote something; by this machine's own clock if it was seen to."""
        written = 0.0 if self._seen is None else self._seen[1] / 1e9
        return max(0.0, min(time.time() - written, time.monotonic() - self._grew))

    @property
    def state(self) -> State:
        """How far the run is, as far as files tell."""
        if self.ended or self.failed:
            return State.DONE if self.ended else State.FAILED
        if self._seen is None:
            return State.WAITING
        return State.SILENT if self.silence > SILENT_SECONDS else State.RUNNING

    def look(self) -> None:
        """Read what was added."""
        try:
            status = (self.path / ROWS).stat()
        except OSError:
            return
        seen = status.st_size, status.st_mtime_ns
        if seen != self._seen:
            self._grew = -math.inf if self._seen is None else time.monotonic()
            self._seen, self.ended = seen, False
            self._read_head()
        if not self.ended:
            self._read(status.st_size)
            self.failed = not self.ended and (self.path / ERROR).exists()

    def _read_head(self) -> None:
        if self.default is None or not self.budget:
            head = read_object(self.path / RUN)
            self.default, self.budget = head.get("default"), head.get("budget", self.budget)

    def _read(self, size: int) -> None:
        end = read_object(self.path / END)
        if "best" in end and self._offset == 0 and end.get("evaluations") == _last_number(self.path / ROWS, size):
            self.evaluations, self._offset = end["evaluations"], size
            self.best = math.inf if end["best"] is None else end["best"]
            self._seconds = end["seconds"]
            self.pace = self._seconds / max(1, self.evaluations)
        elif size != self._offset:
            self._read_rows(size)
        self.ended = end.get("evaluations") == self.evaluations

    def _read_rows(self, size: int) -> None:
        if size < self._offset:  # someone cut it
            self._forget()
        with (self.path / ROWS).open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        data = data[: data.rfind(b"\n") + 1]
        added = data.count(b"\n") - (self._offset == 0 and bool(data))  # one is the header's
        self.evaluations += added
        self._offset += len(data)
        self.best = min(self.best, best_value(data))
        self._seconds += added * mean_seconds(data)
        self.pace = self._seconds / self.evaluations if self.evaluations else None


def best_value(data: bytes) -> float:
    """Return the least value of some whole lines: every improvement keeps its candidate, so few need to be parsed."""
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == _NEWLINE)
    starts = np.append(0, ends[:-1] + 1)
    # without candidate and reason a line ends in three commas and the eight digits of its checksum
    bare = (text[np.maximum(ends[:, None] - (9, 10, 11), 0)] == _COMMA).all(axis=1)
    lines = (data[start : start + _FIELDS] for start in starts[~bare].tolist())
    return min((_field(line, 2) for line in lines), default=math.inf)


def mean_seconds(data: bytes) -> float:
    """Return about what an evaluation took among some whole lines, by a sample spread evenly over them."""
    starts = np.append(0, np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE) + 1)[:-1]
    chosen = starts[:: max(1, len(starts) // _SAMPLE)].tolist()
    seconds = [_field(line, 4) + _field(line, 5) for line in (data[start : start + _FIELDS] for start in chosen)]
    finite = [each for each in seconds if each < math.inf]
    return sum(finite) / max(1, len(finite))


def _field(line: bytes, place: int) -> float:
    try:
        return float(line.split(b",", place + 1)[place])
    except (ValueError, IndexError):  # the header, or damage: the run itself will refuse it
        return math.inf


def _last_number(file: Path, size: int) -> int:
    """Return the number of the last evaluation of a log; -1 if its line is not whole or too long to look at."""
    with file.open("rb") as log:
        log.seek(max(0, size - _TAIL), os.SEEK_SET)
        line = log.read().rpartition(b"\n")[0].rpartition(b"\n")[2]
    number = line.partition(b",")[0]
    return int(number) if number.isdigit() else -1


def read_object(file: Path) -> dict[str, Any]:
    """Return a JSON object, empty where there is none: to be read by people is all that it is for here."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
