"""Statistics of a growing `rows.csv`: only new lines are read, and few of them are parsed.

Damaged lines are ignored here: `rows.read_rows`, with which runs are resumed, reports them.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .rows import COLUMNS

_TAIL, _SAMPLE, _FIELDS = 1 << 16, 500, 200
"""Bytes in which the last line is looked for; lines of which the seconds are read; bytes of a line up to its times."""
_COMMA, _NEWLINE = b",\n"
_VALUE, _STRATEGY, _EVALUATION = map(COLUMNS.index, ("value", "strategy_seconds", "evaluation_seconds"))


class Tail:
    """The evaluations that a log holds so far.

    Attributes:
      evaluations: their number.
      best: the lowest value; inf before there is one.
      seconds: the approximate total time of all evaluations, including the strategy's share.
      offset: bytes that have been read.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._start_again()

    def _start_again(self) -> None:
        self.evaluations, self.best, self.seconds, self.offset = 0, math.inf, 0.0, 0

    def skip(self, size: int, evaluations: int, best: float, seconds: float) -> None:
        """Treat a whole log of `size` bytes, whose totals are known, as read."""
        self.offset, self.evaluations, self.best, self.seconds = size, evaluations, best, seconds

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
            data = file.read()
        data = data[: data.rfind(b"\n") + 1]
        added = data.count(b"\n") - (self.offset == 0 and bool(data))  # one is the header's
        self.evaluations += added
        self.offset += len(data)
        self.best = min(self.best, best_value(data))
        self.seconds += added * mean_seconds(data)

    def last_number(self, size: int) -> int:
        """Return the number of the last evaluation; -1 if its line is not whole or too long to look at."""
        with self._file.open("rb") as log:
            log.seek(max(0, size - _TAIL))
            line = log.read().rpartition(b"\n")[0].rpartition(b"\n")[2]
        number = line.partition(b",")[0]
        return int(number) if number.isdigit() else -1


def best_value(data: bytes) -> float:
    """Return the lowest value in some complete lines. Only improvements, which store a candidate, are parsed."""
    text = np.frombuffer(data, np.uint8)
    starts, ends = _lines(text)
    # without candidate and reason a line ends in three commas and the eight digits of its checksum
    bare = (text[np.maximum(ends[:, None] - (9, 10, 11), 0)] == _COMMA).all(axis=1)
    return min((_value(data[start : start + _FIELDS]) for start in starts[~bare].tolist()), default=math.inf)


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


def _value(line: bytes) -> float:
    """Return the cost on a line; inf for the header and for damage, which the run itself will refuse."""
    try:
        return float(line.split(b",", _VALUE + 1)[_VALUE])
    except (ValueError, IndexError):
        return math.inf


def _seconds(line: bytes) -> float:
    """Return what the evaluation on a line took, the strategy's share included; inf as for `_value`."""
    fields = line.split(b",", _EVALUATION + 1)  # once for both numbers: thousands of lines are read at each look
    try:
        return float(fields[_STRATEGY]) + float(fields[_EVALUATION])
    except (ValueError, IndexError):
        return math.inf
