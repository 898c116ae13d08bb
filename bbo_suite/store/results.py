"""The result of a run in numbers: what reports, tables of runs and `run --json` say of it."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.level import LEVEL, Level
from ..core.problem import Status
from ..core.quantities import over_default
from ..errors import UserError
from .folders import last_error
from .identity import Run, end_reason, read_head
from .remeasured import Finalist, final_speedup, finalists
from .rows import PIECE, open_log, pieces, together

if TYPE_CHECKING:
    import pandas as pd

COUNTED = ("digest", "reason")
"""The columns of text that the numbers of a run need."""
_ROW = re.compile(rb"\n\d+(,[^,\n]*,[^,\n]*,[^,\n]*),")
"""The digest, value and status of a row."""
_TOGETHER = 1 << 16
"""Candidates that are compared at a time, about."""


@dataclass(frozen=True)
class RunResult:
    """One run.

    Attributes:
      problem, strategy: their names, in a report with a number where one id stands for several.
      head: the content of `run.json`.
      ended: why it ended (budget, covered, time, price); empty if it has not.
      error: that stopped its last attempt; empty if none did.
      evaluations, unique: number of candidates, and of different ones; nan if an imported run does not tell them.
      failures: by status.
      reasons: how often each reason for a failure occurred.
      steps, costs: `(m,)` evaluations at which it improved, and the best cost from then on.
      strategy_seconds, evaluation_seconds: totals.
      noise: the largest relative difference between two costs of the same candidate; nan if none was repeated.
      finalists: the candidates that were measured again.
    """

    problem: str
    strategy: str
    head: dict[str, Any]
    ended: str
    error: str
    evaluations: int
    unique: float
    failures: Counter[str]
    reasons: Counter[str]
    steps: NDArray[np.int64]
    costs: NDArray[np.float64]
    strategy_seconds: float
    evaluation_seconds: float
    noise: float
    finalists: Sequence[Finalist] = ()

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.head["seed"])

    @property
    def level(self) -> Level:
        """What the strategy knows of the problem."""
        return Level.of(self.head)

    @property
    def status(self) -> str:
        """How it ended: budget, covered, time or price; unfinished, or failed if an error stopped it."""
        return self.ended or ("failed" if self.error else "unfinished")

    @property
    def reach(self) -> int:
        """The evaluations up to which its best is known: the budget, if it covered its space."""
        return max(self.evaluations, int(self.head["budget"])) if self.ended == "covered" else self.evaluations

    def best(self, evaluations: int) -> float:
        """Return the best cost after a number of evaluations, inf if all failed."""
        place = int(np.searchsorted(self.steps, evaluations, side="right"))
        return float(self.costs[place - 1]) if place else np.inf

    def speedup(self, evaluations: int) -> float:
        """Return the default's cost / the best cost so far: 0 if all failed."""
        default, best = float(self.head["default"]), self.best(evaluations)
        return 1.0 if default == best else np.inf if best == 0 else default / best

    def remeasured(self, evaluations: int) -> float | None:
        """Return the speedup of the best candidate so far, measured again; None if it was not, 0 if all failed."""
        place = int(np.searchsorted(self.steps, evaluations, side="right"))
        return final_speedup(self.finalists, int(self.steps[place - 1])) if place else 0.0

    @property
    def choice(self) -> tuple[int, float] | None:
        """The evaluation of the candidate to use and the default's cost / its cost; None if nothing succeeded.

        Of candidates that were measured again it is the best one; else the one of the lowest cost.
        """
        last = max(self.finalists, key=lambda each: each.speedup, default=None)
        if last is not None and 0 < last.speedup < math.inf:
            return last.evaluation, last.speedup
        return (int(self.steps[-1]), self.speedup(self.evaluations)) if len(self.steps) else None

    @property
    def final_speedup(self) -> float:
        """The speedup of its best candidate, measured again if it was."""
        again = self.remeasured(self.evaluations)
        return self.speedup(self.evaluations) if again is None else again

    @property
    def final_cost(self) -> float:
        """The best cost, or if measured again the default's cost / the speedup; inf if all failed."""
        again = self.remeasured(self.evaluations)
        if again is None:
            return self.best(self.evaluations)
        return float(self.head["default"]) / again if again else np.inf

    def facts(self, path: Path) -> dict[str, Any]:
        """Return the result as `run --json` prints it; None where there is no number."""
        best = self.best(self.evaluations)
        in_search = over_default(float(self.head["default"]), best)
        again = self.remeasured(self.evaluations) if self.finalists and len(self.steps) else None
        return {
            **{key: self.head[key] for key in ("problem", "strategy", "seed", "budget", "batch")},
            "evaluations": self.evaluations,
            "unique": None if math.isnan(self.unique) else int(self.unique),
            "failed": self.failures.total(),
            "unit": self.head["unit"],
            "default": self.head["default"],
            "best": best if best < math.inf else None,
            "speedup": in_search if again is None else again,
            "search_speedup": in_search,
            "remeasured": again is not None,
            "optimum": self.head["optimum"],
            "strategy_seconds": self.strategy_seconds,
            "evaluation_seconds": self.evaluation_seconds,
            LEVEL: self.head[LEVEL],
            "complete": bool(self.ended),
            "ended": self.ended or None,
            "path": str(path),
        }


def result_of(path: Path, head: dict[str, Any], numbers: dict[str, Any]) -> RunResult:
    """Return the result of the run in a folder from what its rows say (see `counted`)."""
    ended = _ended(path, numbers["evaluations"])
    names = head["problem"], head["strategy"]
    return RunResult(*names, head, ended, last_error(path), **numbers, finalists=finalists(path))


def _ended(path: Path, evaluations: int) -> str:
    """Return why a run ended; empty if it has not, or if that cannot be read."""
    try:
        return end_reason(path, evaluations) or ""
    except UserError:
        return ""


def summarise(path: Path) -> dict[str, Any]:
    """Return one run in numbers, as `run --json` prints it; None where there is no number.

    The speedup is that of the best candidate as measured again, where it was; `search_speedup` is that of the search.
    A long log is read in pieces, of which one at a time is in memory.

    Raises:
      UserError: a file is missing or damaged.
    """
    return result_of(path, read_head(path), numbers_of(path)).facts(path)


def numbers_of(path: Path) -> dict[str, Any]:
    """Return the fields of a `RunResult` that follow from the rows in a folder, of which one piece is in memory.

    Raises:
      UserError: the log is damaged.
    """
    return numbers_and_rows(path, COUNTED, kept=False)[0]


def numbers_and_rows(
    path: Path, texts: Collection[str], kept: bool = True
) -> tuple[dict[str, Any], list[pd.DataFrame]]:
    """Return the fields of a `RunResult` and, if they are kept, the rows, of whose texts one piece is in memory.

    Args:
      texts: to read; the rows are without those that are counted.

    Raises:
      UserError: the log is damaged.
    """
    totals, rows = _Totals(), list[Any]()
    for piece in pieces(path, texts):
        totals.add(*_Columns(hashed(piece)).between(0, len(piece)))
        rows += [piece.drop(columns=[*COUNTED])] if kept else []
    return totals.numbers(), [together(rows)] if kept else []


def hashed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with hashes in the place of digests: 8 bytes for each instead of 65."""
    from pandas.util import hash_array

    return rows.assign(digest=hash_array(rows["digest"].to_numpy(object)))


def counted(rows: pd.DataFrame, lengths: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the fields of a `RunResult` that follow from its rows, for each run.

    Args:
      rows: of all runs, one run after the other, with the columns of text in `COUNTED`, and `hashed`.
      lengths: the number of rows of each run.
    """
    columns, end = _Columns(rows), 0
    for length in lengths:
        totals, start, end = _Totals(), end, end + length
        totals.add(*columns.between(start, end))
        yield totals.numbers()


class _Columns:
    """The columns of a frame of rows as arrays, of which a slice costs nothing."""

    def __init__(self, rows: pd.DataFrame) -> None:
        from pandas.util import hash_array

        self._hashes = rows["digest"].to_numpy()
        self._unknown = hash_array(np.array([""], object))[0]
        self._numbers = [rows[name].to_numpy() for name in ("value", "strategy_seconds", "evaluation_seconds")]
        reasons = rows["reason"].astype("category").cat
        self._kinds = [(kind.codes.to_numpy(), list(kind.categories)) for kind in (rows["status"].cat, reasons)]

    def between(self, start: int, end: int) -> tuple[Any, ...]:
        """Return hashes of digests, whether one is unknown, values, seconds (two arrays), failures and reasons."""
        hashes, (values, *seconds) = self._hashes[start:end], (array[start:end] for array in self._numbers)
        failed = self._kinds[0][0][start:end] != Status.OK
        words = [[names[code] for code in codes[start:end][failed].tolist()] for codes, names in self._kinds]
        return hashes, bool((hashes == self._unknown).any()), values, *seconds, *words


class _Totals:
    """The numbers of one run, of whose rows one piece at a time is in memory."""

    def __init__(self) -> None:
        self._evaluations, self._best, self._unknown = 0, math.inf, False
        self._failures, self._reasons = Counter[str](), Counter[str]()
        self._seconds = [0.0, 0.0]
        self._steps: list[NDArray[np.int64]] = []
        self._costs: list[NDArray[np.float64]] = []
        self._hashes: list[NDArray[np.uint64]] = []
        self._values: list[NDArray[np.float64]] = []

    def add(
        self,
        hashes: NDArray[np.uint64],
        unknown: bool,
        values: NDArray[np.float64],
        strategy_seconds: NDArray[np.float32],
        evaluation_seconds: NDArray[np.float32],
        failures: Iterable[str],
        reasons: Iterable[str],
    ) -> None:
        """Count some rows; their arguments are those of `_Columns.between`."""
        best = np.minimum.accumulate(np.append(self._best, values))
        better = best[1:] < best[:-1]
        self._steps.append(np.flatnonzero(better) + 1 + self._evaluations)
        self._costs.append(best[1:][better])
        self._evaluations, self._best = self._evaluations + len(values), float(best[-1])
        self._unknown |= unknown
        self._failures.update(failures)
        self._reasons.update(filter(None, reasons))
        for number, seconds in enumerate((strategy_seconds, evaluation_seconds)):
            self._seconds[number] += float(seconds.sum(dtype=np.float64))
        self._hashes.append(hashes)
        self._values.append(values)

    def numbers(self) -> dict[str, Any]:
        """Return the fields of a `RunResult` that follow from its rows."""
        unique, noise = (math.nan, math.nan) if self._unknown else _repeated(_all(self._hashes), _all(self._values))
        return {
            "evaluations": self._evaluations,
            "unique": unique,
            "failures": self._failures,
            "reasons": self._reasons,
            "steps": np.concatenate(self._steps),
            "costs": np.concatenate(self._costs),
            "strategy_seconds": self._seconds[0],
            "evaluation_seconds": self._seconds[1],
            "noise": noise,
        }


def _all(parts: list[NDArray]) -> NDArray:
    """Return parts as one array, and remove them, so that one column at a time is in memory twice."""
    joined = np.concatenate(parts)
    parts.clear()
    return joined


def _repeated(hashes: NDArray[np.uint64], values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the number of different candidates, and the largest difference of a repeated one; nan if none was."""
    parts = (hashes % np.uint64(1 + len(hashes) // _TOGETHER)).astype(np.uint32)
    counts, noises = zip(*(_repeated_in(hashes[own], values[own]) for own in _equal(parts)), strict=True)
    known = [noise for noise in noises if not math.isnan(noise)]
    return sum(counts), max(known, default=math.nan)


def _equal(parts: NDArray[np.uint32]) -> Iterator[NDArray[np.bool_]]:
    """Yield, for each number, where it stands; candidates that are alike have the same."""
    yield from (parts == part for part in range(int(parts.max(initial=0)) + 1))


def _repeated_in(hashes: NDArray[np.uint64], values: NDArray[np.float64]) -> tuple[int, float]:
    order = np.argsort(hashes, kind="stable")
    again = np.zeros(len(order), bool)
    ascending = hashes[order]
    np.equal(ascending[1:], ascending[:-1], out=again[1:])
    unique = len(order) - int(again.sum())
    if unique == len(order):
        return unique, math.nan
    starts = np.flatnonzero(~again)
    lengths = np.diff(starts, append=len(order))
    several = lengths > 1  # only of these are costs compared: most candidates occur once
    own = values[order[np.repeat(several, lengths)]]
    before = np.repeat(values[order[starts[several]]], lengths[several])
    both = np.isfinite(own) & np.isfinite(before) & (before > 0)
    apart = np.abs(own[both] / before[both] - 1).max(initial=0.0)
    return unique, float(np.inf if (np.isfinite(own) != np.isfinite(before)).any() else apart)


def digest_of_rows(path: Path, head: dict[str, Any]) -> str:
    """Return 16 hexadecimal digits, of a run's identity and the digest, value and status of each complete row.

    Equal runs have equal digests on any machine: seconds do not count. The rows are trusted, not checked.

    Raises:
      UserError: the log cannot be read.
    """
    identity, cut = Run.of(head).identity(), b""
    content = hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=8)
    with open_log(path) as log:
        while piece := log.read(PIECE):
            whole, end, cut = (cut + piece).rpartition(b"\n")
            content.update(b"".join(b"\n" + row[1:] for row in _ROW.findall(b"\n" + whole + end)))
    return content.hexdigest()
