"""Digests of runs: they show, without the rows, whether a repeated run has the same candidates, values and statuses.

A table of digests is a CSV file with one line per run. Seconds do not count: they differ from machine to machine.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self

from ..errors import UserError
from .plan import RunName
from .stored_run import StoredRun


class RunDigest(NamedTuple):
    """One line of a table.

    Attributes:
      problem, strategy, seed: of the run.
      evaluations: the number of its rows.
      best: the lowest value; inf if nothing succeeded.
      digest: 16 hexadecimal digits, of the run's identity and the digest, value and status of each row.
    """

    problem: str
    strategy: str
    seed: int
    evaluations: int
    best: float
    digest: str

    @property
    def name(self) -> RunName:
        """What distinguishes the run from the others of its study."""
        return RunName(self.problem, self.strategy, self.seed)

    @classmethod
    def of(cls, run: StoredRun) -> Self:
        """Return the digest of a stored run.

        Raises:
          UserError: its log is damaged.
        """
        content = hashlib.blake2b(json.dumps(run.identity.identity(), sort_keys=True).encode(), digest_size=8)
        for row in run.rows:
            content.update(f"\n{row.digest},{row.value!r},{row.status.word}".encode())
        best = min((row.value for row in run.rows), default=math.inf)
        return cls(*run.name, len(run.rows), best, content.hexdigest())


def write_digests(file: Path, digests: Iterable[RunDigest]) -> None:
    """Write a table of digests."""
    with file.open("w", encoding="utf-8", errors="surrogateescape", newline="") as table:
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(RunDigest._fields)
        writer.writerows(digests)


def read_digests(file: Path) -> dict[RunName, RunDigest]:
    """Return a table of digests by run.

    Raises:
      UserError: the file cannot be read, or is not such a table.
    """
    try:
        with file.open(encoding="utf-8", errors="surrogateescape", newline="") as table:
            reader = csv.reader(table, strict=True)
            if tuple(next(reader, ())) != RunDigest._fields:
                raise UserError(f"{file} is not a table of digests; `export STUDY --to digests` writes one")
            return {digest.name: digest for digest in (_parsed(file, reader.line_num, cells) for cells in reader)}
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except csv.Error as error:
        raise UserError(f"{file} is damaged ({error}); restore it") from None


def _parsed(file: Path, line: int, cells: list[str]) -> RunDigest:
    try:
        problem, strategy, seed, evaluations, best, digest = cells
        return RunDigest(problem, strategy, int(seed), int(evaluations), float(best), digest)
    except ValueError:
        raise UserError(f"{file}, line {line} is damaged; restore the file") from None
