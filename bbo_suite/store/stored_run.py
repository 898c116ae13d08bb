"""One stored run: its identity, what its `run.json` says, and its rows, exact or as a frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError, leave_out
from . import rows
from .folders import REMEASURED, ROWS, last_error
from .identity import IMPORTED, Run, complete, read_head
from .plan import RunName
from .remeasured import final_speedup, finalists
from .rows import Row, RowLog, read_rows

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class StoredRun:
    """A run's folder, which may still be written to.

    Attributes:
      path: of the folder.
      head: the content of `run.json`.
    """

    path: Path
    head: dict[str, Any]

    @cached_property
    def identity(self) -> Run:
        """What identifies the run."""
        return Run.of(self.head)

    @property
    def name(self) -> RunName:
        """What distinguishes the run from the others of its study."""
        return RunName(self.identity.problem, self.identity.strategy, self.identity.seed)

    @cached_property
    def rows(self) -> list[Row]:
        """All complete rows in order, each with its checksum verified.

        Raises:
          UserError: the log is damaged.
        """
        return read_rows(self.path)

    def each_row(self) -> Iterator[Row]:
        """Yield the same rows; unless `rows` holds them all, few of them are in memory at a time.

        Raises:
          UserError: the log is damaged.
        """
        yield from self.__dict__.get("rows") or RowLog(self.path).rows()

    def frame(self) -> pd.DataFrame:
        """Return all complete rows as `rows.frame` reads them; they are not kept."""
        return rows.frame(self.path)

    @cached_property
    def _tally(self) -> tuple[int, Row | None, dict[int, Row]]:
        """The number of rows, the first one with the lowest value, and those that were measured again."""
        wanted, again = {each.evaluation for each in finalists(self.path)}, dict[int, Row]()
        count, best = 0, None
        for row in self.each_row():
            count = row.evaluation
            best = row if row.value < (math.inf if best is None else best.value) else best
            if count in wanted:
                again[count] = row
        return count, best, again

    @property
    def count(self) -> int:
        """The number of complete rows."""
        return self._tally[0]

    @property
    def best(self) -> Row | None:
        """The first row with the lowest value; None if nothing succeeded."""
        return self._tally[1]

    @property
    def choice(self) -> tuple[Row, float] | None:
        """The row of the candidate to use and its cost; None if nothing succeeded.

        Of candidates that were measured again it is the best one, which costs the default's cost / its speedup; else
        it is `best` at its stored cost.
        """
        last = max(finalists(self.path), key=lambda each: each.speedup, default=None)
        if last is None or not 0 < last.speedup < math.inf:
            return (self.best, self.best.value) if self.best else None
        if last.evaluation > self.count:
            raise UserError(
                f"{self.path / REMEASURED} has evaluation {last.evaluation}, which {ROWS} lacks; restore both"
            )
        return replace(self._tally[2][last.evaluation], config=last.config), self.head["default"] / last.speedup

    @property
    def speedup(self) -> float | None:
        """The speedup of the best candidate, as measured again if it was; None if nothing succeeded or it costs 0."""
        best = self.best
        again = None if best is None else final_speedup(finalists(self.path), best.evaluation)
        return again if again is not None else self.head["default"] / best.value if best and best.value else None

    @property
    def evaluations(self) -> int:
        """The number of evaluations that the run made, or its budget if it has not ended."""
        return self.count if self.is_complete(self.count) else self.identity.budget

    def is_complete(self, evaluations: int) -> bool:
        """Return whether the run has ended with so many evaluations."""
        return complete(self.path, evaluations)

    @property
    def source(self) -> str:
        """The file of another tool that the run was imported from; empty for a run made by this suite."""
        entry = self.head.get(IMPORTED)
        return str(entry.get("source")) if isinstance(entry, dict) else ""

    @property
    def error(self) -> str:
        """The last line of the error that ended the last attempt; empty if there was none."""
        return last_error(self.path)

    @property
    def modified(self) -> float:
        """When the rows were last written, in seconds since 1970.

        Raises:
          OSError: there are no rows.
        """
        return (self.path / ROWS).stat().st_mtime

    def __str__(self) -> str:
        return self.name.label


def open_run(path: Path) -> StoredRun:
    """Return the run of a folder, its rows not read yet.

    Raises:
      UserError: `run.json` is missing or damaged.
    """
    return StoredRun(path, read_head(path))


def readable(folders: Iterable[Path]) -> Iterator[StoredRun]:
    """Yield the runs whose files are valid; the others are named (see `leave_out`)."""
    for folder in folders:
        try:
            run = open_run(folder)
            _ = run.choice
        except UserError as error:
            leave_out(error)
        else:
            yield run
