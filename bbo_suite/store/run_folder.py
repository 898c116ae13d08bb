"""The writer of a run's folder: one at a time, append-only, flushed per batch, readable at any moment."""

from __future__ import annotations

import json
import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..files.log import moved
from ..files.writing import acquired, as_json, disk_errors, write_json
from .folders import DIAGNOSTICS, END, ERROR, LOCK, PARTS, REMEASURED, ROWS, RUN, STOPPED
from .identity import (
    CODE,
    PAIRS,
    PRICE,
    check_identity,
    complete,
    end_reason,
    read_end,
    stored_head,
    with_checksum,
    write_head,
)
from .rows import HEADER, Row, RowLog

SYNC_SECONDS = 5.0
"""Rows are on disk, safe from a power loss, after the first batch that ends so long after the last such batch."""


class RunFolder:
    """The only writer of one run's folder; a context manager that holds the folder's lock.

    `run.json` holds the run's identity and the facts of where it was made, `rows.csv` the evaluations. `end.json` says
    why the run ended and exists only once it has; `error.txt` says why the last attempt failed. If `run.json` is
    missing or damaged, it is written again once a replay of the rows has shown which run they are of.

    Args:
      path: the folder, in that of a study; created if absent.
      identity: must equal the stored one, if there are rows.
      facts: written next to the identity when the run starts: versions, machine, the default's cost.
      lock_timeout: seconds to wait for another process that holds the folder.

    Attributes:
      stored: the number of rows when the folder was entered.
      sync_first: brings to disk what the rows need; it is called before they are brought there.

    Raises:
      UserError: the folder cannot be written, another process holds it, or it holds another run or a damaged log.
    """

    def __init__(
        self, path: Path, identity: Mapping[str, Any], facts: Mapping[str, Any], lock_timeout: float = 0
    ) -> None:
        self.path, self._log = path, RowLog(path)
        self._head = {**identity, **facts}
        self._identity = dict(identity)
        self._lock_timeout = lock_timeout
        self.sync_first: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        with disk_errors(self.path):
            try:
                self.path.mkdir(exist_ok=True)
            except FileNotFoundError:
                raise moved(self.path.parent) from None
            self._lock = acquired(self.path / LOCK, str(self.path), self._lock_timeout).lock
            try:
                self._enter()
            except BaseException:
                self._lock.release()
                raise
        return self

    def _enter(self) -> None:
        check_identity(self.path, self._identity, self._head.get(CODE))
        for note in (ERROR, STOPPED):  # of an earlier attempt
            (self.path / note).unlink(missing_ok=True)
        self.stored, self._seconds = 0, 0.0
        for row in self._log.rows():
            self.stored, self._seconds = row.evaluation, self._seconds + row.strategy_seconds + row.evaluation_seconds
        head = stored_head(self.path)
        self._identified = head is not None
        if not self.stored:
            self._begin(head or {})
        self._log.open()
        self._synced = time.monotonic()

    def _begin(self, earlier: Mapping[str, Any]) -> None:
        """Write `run.json`; a run that left no row may have had other options or other code, so nothing of it stays."""
        if {key: earlier.get(key) for key in self._head} != json.loads(json.dumps(self._head)):
            self._identified = False
            for name in (END, DIAGNOSTICS, PARTS, REMEASURED):
                (self.path / name).unlink(missing_ok=True)
        self._identify()

    def _identify(self) -> None:
        if not self._identified:
            write_head(self.path, self._head)
            self._identified = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._log.close()
        self._lock.release()

    @property
    def unverified_reason(self) -> str:
        """Why the stored rows may be of another run; empty if `run.json` says which run they are of."""
        return "" if self._identified else f"its {RUN} is missing or damaged, and these rows may be of another run"

    def rows(self) -> Iterator[Row]:
        """Yield the rows that are stored, one at a time.

        Raises:
          UserError: the log is damaged.
        """
        yield from RowLog(self.path).rows()

    @property
    def ended(self) -> bool:
        """True if the run is complete and every row is still there."""
        return self._identified and complete(self.path, self.stored)

    def has_time(self, max_seconds: float) -> bool:
        """Return whether the run ended at its time limit and the limit is higher now."""
        return end_reason(self.path, self.stored) == "time" and self._seconds < max_seconds

    def is_worth_more(self, price: float) -> bool:
        """Return whether the run ended at its price and the price is lower now."""
        if end_reason(self.path, self.stored) != "price":
            return False
        return float((read_end(self.path) or {}).get(PRICE, math.inf)) > price

    @property
    def default(self) -> float:
        """The cost of the default."""
        return float(self._head["default"])

    def reopen(self) -> None:
        """Mark the run as not complete."""
        with disk_errors(self.path):
            (self.path / END).unlink(missing_ok=True)

    def append(self, rows: Sequence[Row]) -> None:
        """Write a batch; once this returns, no crash of the process loses it."""
        with disk_errors(self.path):
            self._identify()
            self._log.append(row.line() for row in rows)
            if time.monotonic() - self._synced > SYNC_SECONDS:
                self._sync()

    def _sync(self) -> None:
        self.sync_first()
        self._log.sync()
        self._synced = time.monotonic()

    def end(self, reason: str, evaluations: int, pairs: int = 0, price: float | None = None) -> None:
        """Mark the run complete.

        Args:
          reason: `budget` (spent), `covered` (the whole space), `time` (up) or `price` (more is not worth it).
          evaluations: the number of rows.
          pairs: of the default and a candidate that were measured again.
          price: the gain of an evaluation that was asked for, if that ended it.
        """
        with disk_errors(self.path):
            self._identify()
            self._sync()
            asked = {} if price is None else {PRICE: price}
            write_json(self.path / END, _ended(reason, evaluations, pairs) | asked)

    def note(self, error: BaseException) -> None:
        """Keep the traceback of the error that stopped the run."""
        text = "".join(traceback.format_exception(error))
        with disk_errors(self.path):
            (self.path / ERROR).write_text(text, encoding="utf-8", errors="backslashreplace")


def write_ended(path: Path, head: Mapping[str, Any], rows: Iterable[Row], reason: str) -> None:
    """Write the folder of a run that has ended, with the number of its rows as its budget if none is known.

    Nothing is forced to the disk, which takes longer than all else for short runs: the caller does that for all.

    Args:
      path: of the folder, which nobody else sees yet.
      reason: why it ended.

    Raises:
      OSError: it cannot be written.
    """
    path.mkdir()
    count = 0
    with (path / ROWS).open("w", encoding="utf-8", newline="\n") as log:
        log.write(HEADER)
        for row in rows:
            log.write(row.line())
            count += 1
    (path / RUN).write_text(as_json(with_checksum({"budget": count, **head})), encoding="utf-8")
    (path / END).write_text(as_json(_ended(reason, count)), encoding="utf-8")


def _ended(reason: str, evaluations: int, pairs: int = 0) -> dict[str, Any]:
    """Return the content of an `end.json`."""
    return {"reason": reason, "evaluations": evaluations, PAIRS: pairs}
