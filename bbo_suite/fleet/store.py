"""The result store of a fleet: an append-only log of what was measured, from which a fleet also resumes.

Each job is a block of lines: a head in JSON with a checksum, and a row for each kernel. A block that a crash left
unfinished at the end of the log is removed; any other damage is refused.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ..errors import UserError
from ..files.log import CheckedLog
from ..files.reading import parse_json, read_json
from ..files.writing import acquired, disk_errors, write_json
from .jobs import Job, Tuned, digests
from .library import KernelLibrary

VERSION = 1
"""Raised whenever the meaning of a stored number changes."""
HEAD, LOG, LOCK = "fleet.json", "results.log", ".lock"
_REMEDY = "restore the file, or delete line {line} and all after it: these results are then measured again"


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
        self._log: CheckedLog[str] = CheckedLog(folder / LOG, checksums=False, remedy=_REMEDY)

    def __enter__(self) -> Self:
        with disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = acquired(self.folder / LOCK, f"the fleet in {self.folder}").lock
            try:
                self._check_identity()
            except BaseException:
                self._lock.release()
                raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._log.close()
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
        """Yield the stored jobs. `append`, which may be called after the last, removes what a crash left unfinished.

        Raises:
          UserError: a block is damaged, or its clock jumped.
        """
        kernels = {int(content): place for place, content in enumerate(library.content.tolist())}
        length, line, clock, blocks = 0, 1, (0, 0), self._lines()
        for head, *rows in blocks:
            found = _checked_head(head, rows)
            if not found:
                if next(blocks, None) or not _is_unfinished(head, rows):
                    raise self._log.damaged("the checksum of its block does not match", line)
                break
            day, job = found["day"], found["job"]
            if (day, job) < clock or job != clock[1]:
                raise self._log.damaged(f"day {day}, job {job} follows {clock}: a clock jumped", line)
            try:
                tuned = _parsed(rows, kernels, width)
            except (ValueError, IndexError) as error:
                raise self._log.damaged(str(error), line) from None
            yield Block(day, job, found["asked"], tuned)
            length, line, clock = (
                length + sum(len(text) + 1 for text in (head, *rows)),
                line + 1 + len(rows),
                (day, job + 1),
            )
        self._log.length = length
        self._log.open()

    def _lines(self) -> Iterator[list[str]]:
        """Yield the lines of each block; only a head begins with a brace."""
        block: list[str] = []
        for line in self._log:
            if line.startswith("{") and block:
                yield block
                block = []
            block.append(line)
        if block:
            yield block

    def append(self, day: int, job: Job, asked: str, library: KernelLibrary, tuned: Tuned) -> None:
        """Write a job's results; once this returns, no crash of the process loses them."""
        rows = _rows(job, library, tuned)
        head: dict[str, Any] = {"day": day, "job": job.number, "method": job.method.word, "compiler": job.version}
        head |= {"asked": asked, "bytes": sum(len(row) + 1 for row in rows)}
        lines = (json.dumps(head | {"check": _checksum(head, rows)}), *rows)
        self._log.append(f"{line}\n" for line in lines)

    def sync(self) -> None:
        """Bring everything to disk."""
        self._log.sync()


def _checksum(head: Mapping[str, Any], rows: Sequence[str]) -> int:
    checked = json.dumps({key: value for key, value in head.items() if key != "check"}, sort_keys=True).encode()
    return zlib.crc32("".join(f"{row}\n" for row in rows).encode(), zlib.crc32(checked))


def _checked_head(line: str, rows: Sequence[str]) -> dict[str, Any]:
    """Return the head of a block; it is empty if the checksum of the block does not match."""
    try:
        head: dict[str, Any] = parse_json(line)
        return head if head["check"] == _checksum(head, rows) else {}
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}


def _is_unfinished(line: str, rows: Sequence[str]) -> bool:
    """Return whether a block is what a crash leaves: its head, and fewer bytes of rows than the head says.

    A head that says more than there ever were is damaged: its checksum is that of the rows.
    """
    try:
        head, size = parse_json(line), sum(len(row) + 1 for row in rows)
        return size < head["bytes"] and head["check"] != _checksum(head | {"bytes": size}, rows)
    except (ValueError, LookupError, TypeError):
        return False


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def _rows(job: Job, library: KernelLibrary, tuned: Tuned) -> list[str]:
    settings = [" ".join(map(repr, row)) for row in tuned.settings.tolist()]
    columns = (library.content[job.kernels], tuned.gain, tuned.compiled, tuned.measured, tuned.digest)
    rows = zip(*(column.tolist() for column in columns), settings, strict=True)
    return [f"{k:016x},{gain!r},{c},{m},{digest:016x},{row}" for k, gain, c, m, digest, row in rows]


def _parsed(lines: Sequence[str], kernels: Mapping[int, int], width: int) -> Tuned:
    """Return the results in rows.

    Raises:
      ValueError, IndexError: they are none of this library.
    """
    rows = [line.split(",") for line in lines]
    if any(int(row[0], 16) not in kernels for row in rows):
        raise ValueError("it has a kernel that the library has not")
    settings = np.array([row[5].split(" ") for row in rows], np.float64).reshape(len(rows), width)
    gain = np.array([row[1] for row in rows], np.float64)
    compiled, measured = np.array([row[2:4] for row in rows], np.int64).reshape(len(rows), 2).T
    digest = np.array([int(row[4], 16) for row in rows], np.uint64)
    if (digest != digests(settings)).any():
        raise ValueError("a digest is not that of its settings")
    return Tuned(settings, gain, compiled, measured, digest)
