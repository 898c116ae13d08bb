"""The result store of a fleet: an append-only log of what was measured, from which a fleet also resumes.

Each job is a block: a line of JSON that says what follows, with a checksum, and the results as lines of CSV. A block
that a crash left unfinished at the end of the log is removed; any other damage is refused.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..files.locks import acquired
from ..files.reading import parse_json, read_json
from ..files.writing import disk_errors, write_json
from .jobs import Job, Tuned, digests
from .library import KernelLibrary

VERSION = 1
"""Raised whenever the meaning of a stored number changes."""
HEAD, LOG, LOCK = "fleet.json", "results.log", ".lock"
COLUMNS = ("kernel", "gain", "compiled", "measured", "digest")


@dataclass(frozen=True)
class Block:
    """A stored job: its day and number, a digest of what was to be tuned, and the results."""

    day: int
    job: int
    asked: str
    tuned: Tuned


class ResultStore:
    """The only writer of one folder; a context manager that holds its lock.

    Args:
      folder: made if it is missing.
      identity: what the results depend on; must equal what is stored.

    Raises:
      UserError: another process holds the folder, it holds another fleet or another version, or the log is damaged.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder, self._identity = folder, {"version": VERSION, **identity}

    def __enter__(self) -> Self:
        with disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = acquired(self.folder / LOCK, f"the fleet in {self.folder}").lock
            try:
                self._check_identity()
                self._file = os.open(self.folder / LOG, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            except BaseException:
                self._lock.release()
                raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._file)
        self._lock.release()

    def _check_identity(self) -> None:
        if not (self.folder / HEAD).exists():
            if (self.folder / LOG).exists() and (self.folder / LOG).stat().st_size:
                raise UserError(f"{self.folder} has results but no {HEAD}, which says of which fleet; restore it")
            write_json(self.folder / HEAD, self._identity)
            return
        stored, wanted = read_json(self.folder / HEAD), parse_json(json.dumps(self._identity))
        for key in sorted({*stored, *wanted}):
            if stored.get(key) != wanted.get(key):
                raise UserError(
                    f"{self.folder} holds results with {key} {_short(stored.get(key))}, but this fleet has "
                    f"{_short(wanted.get(key))}; choose another --study, or delete the folder"
                )

    def blocks(self, library: KernelLibrary, width: int) -> Iterator[Block]:
        """Yield the stored jobs, then remove what a crash left unfinished. Call it before anything is added."""
        numbers = {int(content): place for place, content in enumerate(library.content.tolist())}
        file, whole, clock = self.folder / LOG, 0, (0, 0)
        with disk_errors(file), file.open("rb") as log:
            while line := log.readline():
                text = self._payload(log, line)
                if text is None:
                    break
                head = json.loads(line)
                if (head["day"], head["job"]) < clock or head["job"] != clock[1]:
                    raise self._damaged(whole, f"day {head['day']}, job {head['job']} follows {clock}: a clock jumped")
                yield Block(head["day"], head["job"], head["asked"], _parsed(text, numbers, width, file, whole))
                clock, whole = (head["day"], head["job"] + 1), log.tell()
            if os.fstat(self._file).st_size > whole:
                os.ftruncate(self._file, whole)

    def _payload(self, log: io.BufferedReader, line: bytes) -> str | None:
        """Return the results behind a head; None if the block is the last one and unfinished."""
        start = log.tell() - len(line)
        try:
            head = parse_json(line)
            size, check = int(head["bytes"]), int(head["check"])
        except (ValueError, KeyError, TypeError):
            if log.read(1):
                raise self._damaged(start, "its head is not one") from None
            return None
        data = log.read(size)
        if len(data) < size or not line.endswith(b"\n"):
            return None
        if zlib.crc32(data, zlib.crc32(_sealed_head(head))) != check:
            if log.read(1):
                raise self._damaged(start, "its checksum does not match")
            return None
        return data.decode()

    def append(self, day: int, job: Job, asked: str, library: KernelLibrary, tuned: Tuned) -> None:
        """Write a job's results; once this returns, no crash of the process loses them."""
        text = _text(job, library, tuned).encode()
        head = {"day": day, "job": job.number, "method": job.method.word, "compiler": job.version, "asked": asked}
        head |= {"bytes": len(text)}
        line = json.dumps(head | {"check": zlib.crc32(text, zlib.crc32(_sealed_head(head)))}).encode() + b"\n"
        with disk_errors(self.folder / LOG):
            data = memoryview(line + text)
            while data:
                data = data[os.write(self._file, data) :]

    def sync(self) -> None:
        """Bring everything to disk."""
        with disk_errors(self.folder / LOG):
            os.fsync(self._file)

    def _damaged(self, place: int, why: str) -> UserError:
        log = self.folder / LOG
        remedy = f"restore the file, or cut it there (truncate -s {place} {log}): later results are then made again"
        return UserError(f"{log} is damaged at byte {place} ({why}); nothing was changed: {remedy}")


def _sealed_head(head: Mapping[str, Any]) -> bytes:
    return json.dumps({key: value for key, value in head.items() if key != "check"}, sort_keys=True).encode()


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def _text(job: Job, library: KernelLibrary, tuned: Tuned) -> str:
    settings = [" ".join(map(repr, row)) for row in tuned.settings.tolist()]
    columns = (library.content[job.kernels], tuned.gain, tuned.compiled, tuned.measured, tuned.digest)
    rows = zip(*(column.tolist() for column in columns), settings, strict=True)
    return "".join(f"{k:016x},{gain!r},{c},{m},{digest:016x},{row}\n" for k, gain, c, m, digest, row in rows)


def _parsed(text: str, numbers: Mapping[int, int], width: int, file: Path, place: int) -> Tuned:
    rows = [line.split(",") for line in text.splitlines()]
    try:
        if any(int(row[0], 16) not in numbers for row in rows):
            raise ValueError("it has a kernel that the library has not")
        settings = np.array([row[5].split(" ") for row in rows], np.float64).reshape(len(rows), width)
        gain, (compiled, measured) = np.array([row[1] for row in rows], np.float64), _counts(rows)
        digest = np.array([int(row[4], 16) for row in rows], np.uint64)
        if (digest != digests(settings)).any():
            raise ValueError("a digest is not that of its settings")
    except (ValueError, IndexError) as error:
        raise UserError(f"{file} is damaged at byte {place} ({error}); restore the file") from None
    return Tuned(settings, gain, compiled, measured, digest)


def _counts(rows: list[list[str]]) -> NDArray[np.int64]:
    return np.array([[row[2], row[3]] for row in rows], np.int64).reshape(len(rows), 2).T
