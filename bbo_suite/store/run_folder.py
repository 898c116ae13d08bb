"""The writer of a run's folder: one at a time, append-only, flushed per batch, readable at any moment."""

from __future__ import annotations

import math
import os
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from ..errors import UserError
from ..files import disk_errors, read_json, write_json
from .folders import END, ERROR, LOCK, ROWS, RUN, STOPPED, has_begun, has_ended
from .identity import CODE, check_identity
from .rows import HEADER, Row, read_rows


class RunFolder:
    """The only writer of one run's folder; a context manager that holds the folder's lock.

    `run.json` holds the run's identity and the facts of where it was made, `rows.csv` the evaluations. `end.json` says
    why the run ended and exists only once it has; `error.txt` says why the last attempt failed.

    Args:
      path: the folder; created if absent.
      identity: must equal the stored one, if there are rows.
      facts: written next to the identity when the run starts: versions, machine, the default's cost.
      patience: seconds to wait for another process that holds the folder.

    Raises:
      UserError: the folder cannot be written, another process holds it, or it holds another run or a damaged log.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], facts: Mapping[str, Any], patience: float = 0) -> None:
        self.path = path
        self._head = {**identity, **facts}
        self._identity = dict(identity)
        self._lock = FileLock(path / LOCK, timeout=patience)

    def __enter__(self) -> Self:
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._acquire()
            try:
                self._enter()
            except BaseException:
                self._lock.release()
                raise
        return self

    def _acquire(self) -> None:
        try:
            self._lock.acquire()
        except Timeout:
            raise UserError(f"another process is writing {self.path}; wait for it or choose another --study") from None

    def _enter(self) -> None:
        check_identity(self.path, self._identity, self._head.get(CODE))
        for note in (ERROR, STOPPED):  # of an earlier attempt
            (self.path / note).unlink(missing_ok=True)
        self.rows, length = read_rows(self.path)
        if not has_begun(self.path):
            if self.rows:
                raise UserError(f"{self.path / RUN} is missing although there are rows; choose another --study")
            write_json(self.path / RUN, self._head)
        self._file = os.open(self.path / ROWS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self._whole: int | None = length

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._file)
        self._lock.release()

    @property
    def ended(self) -> bool:
        """True if the run is complete and every row is still there."""
        return complete(self.path, len(self.rows))

    def has_time(self, max_seconds: float) -> bool:
        """Return whether the run ended at its time limit and the limit is higher now."""
        taken = sum(row.strategy_seconds + row.evaluation_seconds for row in self.rows)
        return end_reason(self.path, len(self.rows)) == "time" and taken < max_seconds

    def reopen(self) -> None:
        """Mark the run as not complete."""
        with disk_errors(self.path):
            (self.path / END).unlink(missing_ok=True)

    def append(self, rows: Sequence[Row]) -> None:
        """Write a batch; once this returns, no crash of the process loses it."""
        with disk_errors(self.path):
            text = "".join(row.line() for row in rows)
            if self._whole is not None:  # remove a line that a crash left incomplete
                os.ftruncate(self._file, self._whole)
                text = text if self._whole else HEADER + text
                self._whole = None
            self._write(text)

    def end(self, reason: str, evaluations: int, best: float = math.inf, seconds: float = 0.0) -> None:
        """Mark the run complete.

        Args:
          reason: `budget` (spent), `covered` (the whole space) or `time` (up); `imported` for an imported run.
          evaluations: the number of rows.
          best: the lowest value. With it and `seconds`, readers of many runs need not read the rows.
          seconds: the total of all rows.
        """
        numbers = {"best": best if math.isfinite(best) else None, "seconds": seconds}
        with disk_errors(self.path):
            os.fsync(self._file)
            write_json(self.path / END, {"reason": reason, "evaluations": evaluations, **numbers})

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Add facts to `run.json` that are known only now."""
        self._head = {**facts, **self._head}
        with disk_errors(self.path):
            write_json(self.path / RUN, self._head)

    def note(self, error: BaseException) -> None:
        """Keep the traceback of the error that stopped the run."""
        text = "".join(traceback.format_exception(error))
        with disk_errors(self.path):
            (self.path / ERROR).write_text(text, encoding="utf-8", errors="backslashreplace")

    def _write(self, text: str) -> None:
        data = memoryview(text.encode())
        while data:
            data = data[os.write(self._file, data) :]


def read_end(path: Path) -> dict[str, Any] | None:
    """Return the content of the `end.json` in a run's folder; None if the run has not ended.

    Raises:
      UserError: it is damaged.
    """
    return read_json(path / END) if has_ended(path) else None


def complete(path: Path, evaluations: int) -> bool:
    """Return whether the run of a folder has ended and all of its rows are still there."""
    return (read_end(path) or {}).get("evaluations") == evaluations


def end_reason(path: Path, evaluations: int) -> str | None:
    """Return why a complete run ended; None if it is not complete."""
    return str((read_end(path) or {}).get("reason", "")) if complete(path, evaluations) else None
