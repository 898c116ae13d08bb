"""The state of one run as its files show it, to any process on any machine, while it is written and after."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.quantities import over_default
from ..errors import UserError
from ..store.folders import ERROR, REMEASURED, ROWS, STOPPED
from ..store.identity import IMPORTED, complete, stored_head
from ..store.plan import RunName
from ..store.rows import COLUMNS, PIECE

if TYPE_CHECKING:
    from ..forecast import Curve

SILENT_SECONDS = 60.0
"""A run without new rows for this long is called silent: its batch is slow, or its process has died."""
_SAMPLE, _FIELDS = 500, 200
"""Lines of which the seconds are read; bytes of a line up to its times."""
_COMMA, _NEWLINE = b",\n"
_VALUE, _STRATEGY, _EVALUATION = map(COLUMNS.index, ("value", "strategy_seconds", "evaluation_seconds"))


class RunState(enum.Enum):
    """How far a run is."""

    WAITING, RUNNING, SILENT, STOPPED, FAILED, DONE = "waiting", "running", "silent", "stopped", "failed", "done"


class RunView:
    """The state of a run. Each `refresh` reads only new rows.

    Attributes:
      budget: of the run.
      default: the default's cost; None before the run has begun.
      ended: True if `end.json` is there, with every row that it counts.
      failed: True if the last attempt ended with an error.
      stopped: True if the user stopped the last attempt.
      pairs: of the default and a candidate that were measured again, while the run has not ended.
    """

    def __init__(self, path: Path, name: RunName, budget: int, default: float | None = None) -> None:
        self.path, self.name, self.budget, self.default = path, name, budget, default
        self.ended = self.failed = self.stopped = False
        self.pairs, self._parameters, self._candidates, self._optimum, self._unit = 0, 0, math.inf, 0.0, ""
        self._tail = Tail(path / ROWS)
        self._seen: tuple[int, int] | None = None
        self._grew = self._first = -math.inf

    @property
    def evaluations(self) -> int:
        """Evaluations stored so far."""
        return self._tail.evaluations

    @property
    def best(self) -> float:
        """The lowest value so far; inf before there is one."""
        return self._tail.best

    @property
    def curve(self) -> Curve | None:
        """What a forecast needs; None before the run has begun, or if it was made by an older version."""
        from ..forecast import Curve

        if not (self.default and self._parameters and self.evaluations):
            return None
        steps, default = self._tail.steps, self.default
        gain = lambda n: max((default / cost - 1 for at, cost in steps if at <= n and cost > 0), default=-1.0)  # noqa: E731
        known = self._parameters, default / self._optimum - 1 if self._optimum else math.inf, self._candidates
        return Curve(gain, self.evaluations, *known, self.ended and self.evaluations < self.budget, self._unit)

    @property
    def pace(self) -> float | None:
        """Mean seconds per evaluation, the strategy's share included; None before two, for the default is known."""
        return self._tail.seconds / self.evaluations if self.evaluations > 1 else None

    @property
    def speedup(self) -> float | None:
        """The best speedup over the default so far."""
        return over_default(self.default or None, self.best)

    @property
    def silence(self) -> float:
        """Seconds since the run last wrote something; by this machine's clock if it was seen to grow."""
        since = time.time() - (0.0 if self._seen is None else self._seen[1] / 1e9)
        if since < 0:  # a clock was set back, here or on the machine that writes
            return time.monotonic() - max(self._grew, self._first)
        return min(since, time.monotonic() - self._grew)

    @property
    def state(self) -> RunState:
        """How far the run is, as far as files tell."""
        if self.ended or self.failed:
            return RunState.DONE if self.ended else RunState.FAILED
        if self.stopped:
            return RunState.STOPPED
        if self._seen is None:
            return RunState.WAITING
        return RunState.SILENT if self.silence > SILENT_SECONDS else RunState.RUNNING

    def facts(self) -> dict[str, Any]:
        """Return the state as plain data."""
        numbers = {"evaluations": self.evaluations, "budget": self.budget, "speedup": self.speedup}
        return {**self.name._asdict(), "state": self.state.value, **numbers}

    def refresh(self) -> None:
        """Read what was added."""
        try:
            status = (self.path / ROWS).stat()
        except OSError:
            return
        seen = status.st_size, status.st_mtime_ns
        if seen != self._seen:
            if self._seen is None:
                self._first = time.monotonic()
            else:
                self._grew = time.monotonic()
            self._seen, self.ended = seen, False
            self._read_head()
        if not self.ended:
            self._read(status.st_size)
            self._count_pairs()
            self.failed = not self.ended and (self.path / ERROR).exists()
            self.stopped = not self.ended and (self.path / STOPPED).exists()

    def _count_pairs(self) -> None:
        try:
            pairs = max(0, (self.path / REMEASURED).read_bytes().count(b"\n") - 1)
        except OSError:  # there is none before the last evaluation
            return
        if pairs != self.pairs:
            self.pairs, self._grew = pairs, time.monotonic()

    def _read_head(self) -> None:
        if self.default is None or not self.budget:
            head = head_of(self.path)
            self.default, self.budget = head.get("default"), head.get("budget", self.budget)
            self._tail.keeps_improvements = IMPORTED not in head
            self._parameters, self._candidates = head.get("parameters", 0), head.get("candidates", math.inf)
            self._unit = head.get("unit", "")
            self._optimum = head.get("optimum") or 0.0

    def _read(self, size: int) -> None:
        self._tail.read(size)
        with suppress(UserError):
            self.ended = complete(self.path, self.evaluations)


def head_of(run: Path) -> dict[str, Any]:
    """Return the content of a run's `run.json`; empty if it cannot be read, because it is only displayed."""
    try:
        return stored_head(run) or {}
    except UserError:
        return {}


class Tail:
    """The evaluations that a log holds so far.

    Attributes:
      evaluations: their number.
      best: the lowest value; inf before there is one.
      steps: the evaluations at which it became lower, and the values.
      seconds: the approximate total time of all evaluations, including the strategy's share.
      offset: bytes that have been read.
      keeps_improvements: True if each improvement holds its candidate, so that other rows need not be parsed.
    """

    def __init__(self, file: Path) -> None:
        self._file, self.keeps_improvements = file, True
        self._start_again()

    def _start_again(self) -> None:
        self.evaluations, self.best, self.seconds, self.offset = 0, math.inf, 0.0, 0
        self.steps: list[tuple[int, float]] = []

    def read(self, size: int) -> None:
        """Read what was added to a log that is `size` bytes long now; all of it if it was cut.

        Raises:
          OSError: the file cannot be read.
        """
        if size == self.offset:
            return
        if size < self.offset:
            self._start_again()
        with self._file.open("rb") as file:
            file.seek(self.offset)
            cut = b""
            while piece := file.read(PIECE):
                whole, end, cut = (cut + piece).rpartition(b"\n")
                self._add(whole + end)

    def _add(self, data: bytes) -> None:
        added = data.count(b"\n") - (self.offset == 0 and bool(data))  # one is the header's
        self.evaluations += added
        self.offset += len(data)
        for evaluation, value in candidates(data, self.keeps_improvements):
            if value < self.best:
                self.best = value
                self.steps.append((evaluation, value))
        self.seconds += added * mean_seconds(data)


def candidates(data: bytes, keeps_improvements: bool = True) -> Iterator[tuple[int, float]]:
    """Yield the evaluations and values of some complete lines, of those at least that may be improvements.

    Args:
      keeps_improvements: True if each improvement holds its candidate; then only lines with a candidate are parsed.
    """
    text = np.frombuffer(data, np.uint8)
    starts, ends = _lines(text)
    # without candidate and reason a line ends in three commas and the eight digits of its checksum
    bare = (text[np.maximum(ends[:, None] - (9, 10, 11), 0)] == _COMMA).all(axis=1) & keeps_improvements
    yield from (_value(data[start : start + _FIELDS]) for start in starts[~bare].tolist())


def mean_seconds(data: bytes) -> float:
    """Return the approximate mean seconds of an evaluation in some complete lines, from an evenly spaced sample."""
    starts, _ = _lines(np.frombuffer(data, np.uint8))
    chosen = starts[:: max(1, len(starts) // _SAMPLE)].tolist()
    seconds = [_seconds(data[start : start + _FIELDS]) for start in chosen]
    finite = [each for each in seconds if each < math.inf]
    return sum(finite) / max(1, len(finite))


def _lines(text: NDArray[np.uint8]) -> tuple[NDArray, NDArray]:
    """Return the `(lines,)` places where the lines of a text begin and end."""
    ends = np.flatnonzero(text == _NEWLINE)
    return np.append(0, ends + 1)[:-1], ends


def _value(line: bytes) -> tuple[int, float]:
    """Return the evaluation and the cost on a line; inf for the header and for damage, which the run will refuse."""
    try:
        fields = line.split(b",", _VALUE + 1)
        return int(fields[0]), float(fields[_VALUE])
    except (ValueError, IndexError):
        return 0, math.inf


def _seconds(line: bytes) -> float:
    """Return what the evaluation on a line took, the strategy's share included; inf as for `_value`."""
    fields = line.split(b",", _EVALUATION + 1)  # once for both numbers: thousands of lines are read at each look
    try:
        return float(fields[_STRATEGY]) + float(fields[_EVALUATION])
    except (ValueError, IndexError):
        return math.inf
