"""The base of problems whose candidates are compiled by a real compiler in supervised children.

Results of compilers, and parts as bytes, are kept on disk: what one run has compiled, no other run compiles again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import sys
import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.problem import Evaluations, Problem, Status
from ..errors import UserError
from ..files.cache import cache_folder
from ..parts.parts import Parts
from .workers import Answer, Service, Workers

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


RUN = "run the result"
"""The stage in which the death of a child is a runtime error."""
_Result = tuple[float, int, str, bytes]
"""Cost, status, reason, and packed parts: none if they were not asked for."""
_STATUS = {status.word: status for status in Status}


class LiveProblem(Problem):
    """A problem whose candidates are evaluated by child processes.

    A subclass calls `_serve` in its constructor, and defines `request`, which turns a candidate into the request to a
    child. The handler in the child (see `Service`) returns a cost, or a pair of a cost and a remark, which becomes the
    row's reason, or a pair of a status as text and a reason. An exception is a compile error. So is the death of the
    child, unless it has entered the stage `run the result`: then it is a runtime error.

    If `tells_parts` is set, the handler also answers `(PARTS, request)`, with a pair: the answer to the request, and
    rows of parts, see `PartRow`. If `statistics` is set, it also answers `(COMPILE, request)`, with the numbers.
    """

    tells_parts: bool = False
    _digest: str = ""

    def _serve(self, service: Service, cache: Cache | None = None) -> None:
        """Set the service that answers requests. Give a cache only if a candidate always costs the same."""
        self._workers, self._cache = Workers(service), cache

    def _identify(self, content: str | bytes, compiler: str = "") -> None:
        """Set all that decides the costs, from which the fingerprint is made.

        Args:
          content: it includes the program, the parameters and the version of the compiler.
          compiler: name and version, under which costs are cached; empty if they vary, so that they are not.
        """
        data = content.encode() if isinstance(content, str) else content
        self._digest = hashlib.sha256(data).hexdigest()[:16]
        if compiler:
            self._cache = Cache(compiler, self._digest)

    def fingerprint(self) -> str:
        """Return a text that changes with what decides the costs, if the subclass has said that; see `Problem`."""
        return self._digest or super().fingerprint()

    def why_unversioned(self) -> str:
        """Return why the fingerprint cannot detect a change of the problem, so that runs cannot be resumed; else ""."""
        if self._digest or type(self).fingerprint is not LiveProblem.fingerprint:
            return ""
        return self._why_code_is_unversioned()

    def leave_cache(self) -> None:
        """Compile every candidate from now on: the cache is neither read nor written."""
        self._cache = None

    @abstractmethod
    def request(self, config: NDArray) -> Any:  # noqa: ANN401 - whatever the handler takes
        """Return the request for a `(d,)` candidate: hashable, and with a `repr` that shows its whole content."""

    def evaluate(self, configs: NDArray) -> Evaluations:
        """Return the costs of `(n, d)` candidates, from the cache or from `workers` children.

        The `seconds` of a batch add up to the time that it took, for any number of children.
        """
        return self._evaluated(configs, with_parts=False)

    def evaluate_parts(self, configs: NDArray) -> Evaluations:
        """Return the same with the costs of parts, if `tells_parts`."""
        return self._evaluated(configs, self.tells_parts)

    def _evaluated(self, configs: NDArray, with_parts: bool) -> Evaluations:
        started = time.perf_counter()
        requests = [self.request(config) for config in configs]
        unique = list(dict.fromkeys(requests))
        outcomes, own = self._outcomes(unique, with_parts)
        places = {request: i for i, request in enumerate(unique)}
        chosen = np.array([places[request] for request in requests])
        values = np.array([outcome[0] for outcome in outcomes])[chosen]
        status = np.array([outcome[1] for outcome in outcomes], np.int8)[chosen]
        reasons = {i: outcomes[place][2] for i, place in enumerate(chosen.tolist()) if outcomes[place][2]}
        parts = unpacked([outcomes[place][3] for place in chosen.tolist()]) if with_parts else None
        shares = own[chosen] + 1e-9
        return Evaluations(values, status, reasons, shares / shares.sum() * (time.perf_counter() - started), parts)

    def _outcomes(self, requests: Sequence[Any], with_parts: bool = False) -> tuple[list[_Result], NDArray[np.float64]]:
        """Return the outcome of each request, and the seconds that a child took: zero if the cache had it."""
        found = self._cached(requests, with_parts)
        missing = [i for i, outcome in enumerate(found) if outcome is None]
        asked = [(PARTS, requests[i]) if with_parts else requests[i] for i in missing]
        answers = self._answers(asked)
        seconds = np.zeros(len(requests))
        seconds[missing] = [answer.seconds for answer in answers]
        new = [self._evaluation(answer, with_parts) for answer in answers]
        for i, outcome in zip(missing, new, strict=True):
            found[i] = outcome
        if self._cache:  # failures are not stored: a crash or a delay may be the machine's fault
            lasting = [i for i, answer in zip(missing, answers, strict=True) if not answer.failure]
            self._cache.put([requests[i] for i in lasting], [found[i][:3] for i in lasting])
            if with_parts:
                self._cache.put_parts([requests[i] for i in lasting], [found[i][3] for i in lasting])
        return found, seconds

    def _answers(self, asked: Sequence[Any]) -> list[Answer]:
        """Return the answers of children to requests; a subclass may share out the work in another way."""
        return self._workers.map(asked, self.workers)

    def _cached(self, requests: Sequence[Any], with_parts: bool) -> list[Any]:
        if not self._cache:
            return [None] * len(requests)
        outcomes = self._cache.get(requests)
        parts = self._cache.get_parts(requests) if with_parts else [b""] * len(requests)
        pairs = zip(outcomes, parts, strict=True)
        return [None if outcome is None or packs is None else (*outcome, packs) for outcome, packs in pairs]

    def _evaluation(self, answer: Answer, with_parts: bool) -> _Result:
        value, rows = answer.value if with_parts and not answer.failure else (answer.value, ())
        return *_outcome(answer, value), self._packed(rows) if rows else b""

    def _packed(self, rows: Sequence[PartRow]) -> bytes:
        """Return rows of parts as they are kept."""
        return packed(self.fingerprint(), rows)

    def compile(self, configs: NDArray) -> NDArray[np.float64]:
        """Return the `(n, k)` statistics of `(n, d)` candidates from `workers` children; nan where one failed."""
        requests = [self.request(config) for config in configs]
        unique = list(dict.fromkeys(requests))
        answers = self._workers.map([(COMPILE, request) for request in unique], self.workers)
        nothing = (np.nan,) * len(self.statistics)
        told = {r: nothing if answer.failure else answer.value for r, answer in zip(unique, answers, strict=True)}
        return np.array([told[request] for request in requests], np.float64).reshape(-1, len(nothing))

    def _ratios(self, ours: Any, theirs: Any, first: int, count: int, reference: str = "") -> list[float]:  # noqa: ANN401 - requests
        """Return logarithms of ratios of two requests, measured in turns by a child that answers `PAIRS`."""
        (answer,) = self._workers.map([(PAIRS, ours, theirs, first, count)])
        if answer.failure:
            return [np.inf]
        if isinstance(answer.value, tuple):
            raise UserError(f"problem {self.id}: {reference or 'the candidate to compare with'}: {answer.value[1]}")
        return list(answer.value)

    def query(self, request: Any) -> Any:  # noqa: ANN401 - whatever the handler knows
        """Return a child's answer to a request that is not a candidate.

        Raises:
          UserError: the child failed.
        """
        (answer,) = self._workers.map([request])
        if answer.failure:
            raise UserError(f"problem {self.id or type(self).__name__}: {answer.reason}")
        return answer.value


def _outcome(answer: Answer, value: Any) -> Outcome:  # noqa: ANN401 - what the handler returned
    if not answer.failure and isinstance(value, tuple):
        word, reason = value
        if not isinstance(word, str):
            return float(word), int(Status.OK), str(reason)
        return np.inf, int(_STATUS[word]), str(reason)
    if not answer.failure:
        return float(value), int(Status.OK), ""
    died = Status.RUNTIME_ERROR if answer.stage == RUN else Status.COMPILE_ERROR
    status = {"timeout": Status.TIMEOUT, "died": died}.get(answer.failure, Status.COMPILE_ERROR)
    return np.inf, int(status), answer.reason
