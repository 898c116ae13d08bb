"""Results of compilers on disk, and parts as bytes: what one run has compiled, no other run compiles again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.problem import Status
from ..files.cache import cache_folder
from ..parts.parts import Parts

Outcome = tuple[float, int, str]
"""Cost, status and reason."""
PARTS = "parts"
"""A request `(PARTS, request)` asks for a pair: the answer to the request, and the rows of its parts."""
COMPILE = "compile"
"""A request `(COMPILE, request)` asks for what compiling alone tells: numbers by the problem's `statistics`."""
PAIRS = "pairs"
"""A request `(PAIRS, ours, theirs, first, count)` asks for ratios of two candidates, as `Problem.ratios` returns."""
PartRow = tuple[str, bytes, float, float]
"""One component that a child reports: its name, its content as far as it is known, its count, and its cost."""
_ROW = np.dtype([("key", "<u8"), ("count", "<f8"), ("cost", "<f8")])
BYTES = 1 << 30
_OPEN = """
PRAGMA trusted_schema = OFF;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS outcomes (key BLOB UNIQUE, cost REAL, status INTEGER, reason TEXT);
CREATE TABLE IF NOT EXISTS parts (key BLOB UNIQUE, packed BLOB);
"""
_DROP_OLDEST = "DELETE FROM {0} WHERE rowid <= (SELECT min(rowid) + (max(rowid) - min(rowid)) / 4 FROM {0})"
_STATUSES = frozenset(int(status) for status in Status)


class Cache:
    """Outcomes by content, shared by all processes. Beyond one gigabyte the oldest are dropped.

    The cache only saves time, so if it cannot be read or written, for example because the disk is full, it prints one
    warning and is not used any more. It holds numbers and text in SQLite: nothing that is read from it is executed.

    Args:
      compiler: name and version; each compiler has its own folder.
      content: digest of the program and of what is measured.
      folder: of all caches (default: `files.cache_folder()`).

    Raises:
      UserError: others own the user's cache folder or can write to it.
    """

    def __init__(self, compiler: str, content: str, folder: Path | None = None) -> None:
        self._file = (folder or cache_folder()) / compiler / "outcomes.db"
        self._content = content
        self._store: sqlite3.Connection | None = None
        self._owner = 0
        self._broken = False

    def get(self, requests: Sequence[Any]) -> list[Outcome | None]:
        """Return the outcome of each request, None where it is not known."""
        return [_checked(row) for row in self._read("SELECT cost, status, reason FROM outcomes", requests)]

    def get_parts(self, requests: Sequence[Any]) -> list[bytes | None]:
        """Return the packed parts of each request, None where they are not known."""
        rows = self._read("SELECT packed FROM parts", requests)
        return [row[0] if row and is_packed(row[0]) else None for row in rows]

    def _read(self, query: str, requests: Sequence[Any]) -> list[tuple[Any, ...] | None]:
        if not self._broken:
            try:
                store = self._opened()
                return [store.execute(f"{query} WHERE key = ?", (self._key(r),)).fetchone() for r in requests]
            except (OSError, sqlite3.Error) as error:
                self._give_up(error)
        return [None] * len(requests)

    def put(self, requests: Iterable[Any], outcomes: Iterable[Outcome]) -> None:
        """Store the outcomes of requests."""
        rows = [(self._key(request), *outcome) for request, outcome in zip(requests, outcomes, strict=True)]
        self._write("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?)", rows)

    def put_parts(self, requests: Iterable[Any], packed: Iterable[bytes]) -> None:
        """Store the packed parts of requests."""
        rows = [(self._key(request), parts) for request, parts in zip(requests, packed, strict=True)]
        self._write("INSERT OR REPLACE INTO parts VALUES (?, ?)", rows)

    def _write(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        if not rows or self._broken:
            return
        try:
            with self._opened() as store:  # one write to the disk for the batch
                store.executemany(statement, rows)
                for table in ("outcomes", "parts") if _size(store) > BYTES else ():
                    store.execute(_DROP_OLDEST.format(table))
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def _opened(self) -> sqlite3.Connection:
        if self._store is None or self._owner != os.getpid():  # a fork must not use its parent's connection
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._store, self._owner = sqlite3.connect(self._file, timeout=10, check_same_thread=False), os.getpid()
            self._store.executescript(_OPEN)
        return self._store

    def _key(self, request: Any) -> bytes:  # noqa: ANN401 - whatever a problem asks its children
        return hashlib.blake2b(f"{self._content}|{request!r}".encode(), digest_size=16).digest()

    def _give_up(self, error: Exception) -> None:
        self._broken = True
        with contextlib.suppress(sqlite3.Error):
            if self._store:
                self._store.close()
        advice = "" if isinstance(error, OSError | sqlite3.OperationalError) else "; delete it, and it is made again"
        print(f"warning: continuing without the cache in {self._file}: {error}{advice}", file=sys.stderr)


def _size(store: sqlite3.Connection) -> int:
    """Return the bytes in use."""
    pages, free, page = (
        store.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * page)


def _checked(row: tuple[Any, ...] | None) -> Outcome | None:
    """Return a row if it is an outcome: anybody may have written the file."""
    if row is None or not isinstance(row[0], float) or row[1] not in _STATUSES or not isinstance(row[2], str):
        return None
    return row[0], row[1], row[2]


def packed(program: str, rows: Iterable[PartRow]) -> bytes:
    """Return the parts of a candidate as bytes.

    The first 16 bits of a key are a hash of the program and of the part's name, so that a strategy can tell which parts
    of two candidates were made of the same function. The others are a hash of its content and cost, too.

    Args:
      program: text that differs for every problem.
    """
    return np.array([(_key(program, *row), row[2], row[3]) for row in rows], _ROW).tobytes()


def packed_by_name(rows: Iterable[PartRow]) -> bytes:
    """Return the parts of a candidate as bytes; keys are those that `name_key` has for their names alone."""
    return np.array([(name_key(row[0]), row[2], row[3]) for row in rows], _ROW).tobytes()


def name_key(name: str) -> int:
    """Return the key of a name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())


def _key(program: str, name: str, content: bytes, count: float, cost: float) -> int:
    named = hashlib.blake2b(f"{program}|{name}".encode(), digest_size=2).digest()
    whole = hashlib.blake2b(f"{program}|{name}|{cost!r}|".encode() + content, digest_size=6).digest()
    return int.from_bytes(named + whole)


def unpacked(candidates: Sequence[bytes]) -> Parts:
    """Return the parts of candidates from their bytes, which are empty where there are none."""
    rows = np.frombuffer(b"".join(candidates), _ROW)
    starts = np.cumsum([0, *(len(candidate) // _ROW.itemsize for candidate in candidates)])
    fields = (rows[name].astype(kind) for name, kind in (("key", np.uint64), ("count", float), ("cost", float)))
    return Parts(starts, *fields)


def is_packed(candidate: object) -> bool:
    """True for what `packed` may have returned."""
    return isinstance(candidate, bytes) and len(candidate) % _ROW.itemsize == 0
