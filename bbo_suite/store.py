"""A run on disk: one folder, one writer, append-only, flushed per batch, readable at any moment."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from .errors import UserError
from .rows import HEADER, Row

RUN, ROWS, END, LOCK, ERROR = "run.json", "rows.csv", "end.json", ".lock", "error.txt"
IMPORTED = "imported"
"""The key of `run.json` under which stands where a run comes from that was not made here."""


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


class disk_errors:
    """Turn an operating system's refusal into one sentence."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, OSError):
            remedy = "mend that, then run the same command again: stored rows are kept"
            raise UserError(f"cannot write {self._path}: {error.strerror or error}; {remedy}") from None


def read_rows(path: Path) -> tuple[list[Row], int]:
    """Return the complete rows of a run's folder and the length in bytes of the part of the file that holds them.

    Raises:
      UserError: a byte that this suite did not write there; the file is left as it is.
    """
    file = path / ROWS
    data = file.read_bytes() if file.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    rows: list[Row] = []
    lines = [f"{line}\n" for line in whole.decode(errors="replace").split("\n")[:-1]]
    if (lines and lines[0] != HEADER) or (not lines and not HEADER.encode().startswith(data)):
        raise damaged(file, 1, "this is not its header")
    for number, line in enumerate(lines[1:], start=2):
        try:
            rows.append(Row.parse(line))
            if rows[-1].evaluation != number - 1:
                raise ValueError(f"it is evaluation {rows[-1].evaluation}, not {number - 1}")
        except (ValueError, KeyError) as error:
            raise damaged(file, number, str(error)) from None
    torn, start = data[len(whole) :], f"{len(rows) + 1},".encode()
    if whole and not (torn.startswith(start) or start.startswith(torn)):
        raise damaged(file, len(rows) + 2, "the unfinished line is not the next evaluation")
    return rows, len(whole)


def damaged(file: Path, line: int, why: str) -> UserError:
    """Return the error for a log that this suite did not write as it stands."""
    remedy = "restore the file, delete its folder to run it anew, or choose another --study"
    return UserError(f"{file}, line {line} is damaged ({why}); nothing was changed: {remedy}")


def check_identity(path: Path, identity: Mapping[str, Any]) -> None:
    """Check that a folder holds no run yet, or the same.

    Raises:
      UserError: it holds another, and the message names what differs; or one that was imported.
    """
    if not (path / RUN).exists():
        return
    stored = read_json(path / RUN)
    if source := stored.get(IMPORTED):
        raise UserError(f"{path} was imported from {source['source']} and cannot be resumed; choose another --study")
    for key, value in identity.items():
        if stored.get(key) != value:
            there, here = json.dumps(stored.get(key)), json.dumps(value)
            raise UserError(f"{path} holds a run with {key} {there}, not {here}; choose another --study, or delete it")


def check_contents(study: Path, fingerprints: Mapping[str, str]) -> None:
    """Check that all runs in a study's folder that are of some problems are of these as they are.

    Args:
      fingerprints: of the problems, by id.

    Raises:
      UserError: one is of another content.
    """
    for file in sorted(study.glob(f"*/{RUN}")):
        stored = read_json(file)
        here, there = fingerprints.get(stored.get("problem", "")), stored.get("fingerprint")
        if here not in (None, there):
            what = f"{stored['problem']} with content {there}, which is not comparable to content {here}"
            raise UserError(f"{file.parent} is of {what}; choose another --study")


def read_json(file: Path) -> dict[str, Any]:
    """Return a JSON object from a file.

    Raises:
      UserError: it is not there, or damaged.
    """
    try:
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{file} is no JSON; restore it, or delete its folder") from None
    if not isinstance(content, dict):
        raise UserError(f"{file} holds no JSON object; restore it, or delete its folder")
    return content


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object so that a reader sees the old file or the whole new one, never a part."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(content, indent=1), encoding="utf-8")
    unfinished.replace(file)


def folder_name(*parts: str) -> str:
    """Return a folder's name that people can read, for any text at all, and another for any other text.

    `fusion/a, annealing, 0` is `fusion--a__annealing__0`; what cannot be read back from such a name is hashed.
    """
    marked = (part.replace("/", "--") for part in parts)
    plain = "__".join(re.sub(r"[^\w.@+-]+", "-", part, flags=re.ASCII).strip("-.") or "x" for part in marked)
    exact = tuple(part.replace("--", "/") for part in plain.split("__")) == parts and len(plain) < 120
    return plain if exact else f"{plain[:100]}={hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}"
