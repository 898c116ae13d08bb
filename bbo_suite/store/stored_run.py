"""A run as it stands on disk, read whole and with every checksum looked at."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..errors import UserError
from .frames import study_path
from .identity import IMPORTED, RUN, Run, read_head
from .rows import Row, read_rows
from .run_folder import complete


@dataclass(frozen=True)
class StoredRun:
    """What a run's folder holds.

    Attributes:
      path: of the folder.
      run: what identifies it.
      head: all of `run.json`.
      rows: of the evaluations, in order.
    """

    path: Path
    run: Run
    head: dict[str, Any]
    rows: list[Row]

    @property
    def best(self) -> Row | None:
        """The first row of the least value; None where nothing succeeded."""
        row = min(self.rows, key=lambda row: row.value, default=None)
        return row if row is not None and math.isfinite(row.value) else None

    @property
    def evaluations(self) -> int:
        """How many it made, or is to make if it has not ended."""
        return len(self.rows) if complete(self.path, len(self.rows)) else self.run.budget

    @property
    def source(self) -> str:
        """The file of another tool that the run was imported from; empty for one that was made here."""
        told = self.head.get(IMPORTED)
        return str(told.get("source")) if isinstance(told, dict) else ""

    def __str__(self) -> str:
        return f"{self.run.strategy} on {self.run.problem}, seed {self.run.seed}"


def read_run(path: Path) -> StoredRun:
    """Return the run of a folder, which may be written meanwhile.

    Raises:
      UserError: a file is missing or damaged.
    """
    head = read_head(path)
    rows, _ = read_rows(path)
    return StoredRun(path, Run(**{field.name: head[field.name] for field in fields(Run)}), head, rows)


def run_folders(study: str, results: Path | str) -> list[Path]:
    """Return the folders of a study's runs, in the order of their names.

    Raises:
      UserError: there is no such study.
    """
    return sorted(file.parent for file in study_path(study, results).glob(f"*/{RUN}"))


def readable(folders: list[Path], complaints: list[str]) -> Iterator[StoredRun]:
    """Yield the runs that can be read; a sentence for each other is appended to `complaints`."""
    for folder in folders:
        try:
            yield read_run(folder)
        except UserError as error:
            complaints.append(str(error))
