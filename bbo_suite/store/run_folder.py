"""A run on disk: one folder, one writer, append-only, flushed per batch, readable at any moment."""

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
from .identity import RUN, check_identity
from .rows import HEADER, ROWS, Row, read_rows

END, LOCK, ERROR = "end.json", ".lock", "error.txt"


class RunFolder:
    """The only writer of one run's folder; a context manager that holds the folder's lock.

    `run.json` is what the run is (`identity`) and where it was made (`facts`), `rows.csv` the evaluations, `end.json`
    says why it ended and is there only once it has, `error.txt` why the last attempt failed.

    Args:
      path: the folder; made if absent.
      identity: what must be equal for stored rows to be continued.
      facts: what is written beside it when the run starts: versions, machine, the default's cost.
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
        check_identity(self.path, self._identity)
        (self.path / ERROR).unlink(missing_ok=True)  # of an earlier attempt
        self.rows, length = read_rows(self.path)
        if not (self.path / RUN).exists():
            if self.rows:
                raise UserError(f"{self.path / RUN} is missing although rows are there; choose another --study")
            write_json(self.path / RUN, self._head)
        self._file = os.open(self.path / ROWS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self._whole: int | None = length

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._file)
        self._lock.release()

    @property
    def ended(self) -> bool:
        """Is the run complete, with every row still there?"""
        return complete(self.path, len(self.rows))

    def has_time(self, max_seconds: float) -> bool:
        """Did the run end for want of time, of which there is more now?"""
        taken = sum(row.strategy_seconds + row.evaluation_seconds for row in self.rows)
        return self.ended and read_json(self.path / END).get("reason") == "time" and taken < max_seconds

    def reopen(self) -> None:
        """Mark the run as not complete."""
        with disk_errors(self.path):
            (self.path / END).unlink(missing_ok=True)

    def append(self, rows: Sequence[Row]) -> None:
        """Write a batch; when this returns, it outlives any crash of the process."""
        with disk_errors(self.path):
            text = "".join(row.line() for row in rows)
            if self._whole is not None:  # the torn end of a line that a crash cut was never acknowledged
                os.ftruncate(self._file, self._whole)
                text = text if self._whole else HEADER + text
                self._whole = None
            self._write(text)

    def end(self, reason: str, evaluations: int, best: float = math.inf, seconds: float = 0.0) -> None:
        """Mark the run complete: `budget` spent, space `covered`, or `time` up.

        What its rows come to, the best value and the seconds of all, is for readers of many runs.
        """
        numbers = {"best": best if math.isfinite(best) else None, "seconds": seconds}
        with disk_errors(self.path):
            os.fsync(self._file)
            write_json(self.path / END, {"reason": reason, "evaluations": evaluations, **numbers})

    def note(self, error: BaseException) -> None:
        """Keep the traceback of what stopped the run, for whoever mends it."""
        text = "".join(traceback.format_exception(error))
        with disk_errors(self.path):
            (self.path / ERROR).write_text(text, encoding="utf-8", errors="backslashreplace")

    def _write(self, text: str) -> None:
        data = memoryview(text.encode())
        while data:
            data = data[os.write(self._file, data) :]


def complete(path: Path, evaluations: int) -> bool:
    """Has the run of a folder ended, and are all of its rows still there?"""
    return (path / END).exists() and read_json(path / END).get("evaluations") == evaluations
