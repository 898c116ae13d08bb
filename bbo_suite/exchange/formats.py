"""What a format has to offer, and a run as a file of somebody else tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..store.rows import Row

if TYPE_CHECKING:
    from .stored_study import StoredStudy

HEAD = (
    *("problem", "fingerprint", "strategy", "options", "seed", "budget", "batch"),
    *("unit", "default", "optimum", "uses_structure"),
)
"""The facts of a run that files hold beside its rows: what it is, and what its costs mean."""


@dataclass(frozen=True)
class ForeignRun:
    """A run as a file tells it.

    Attributes:
      head: what it says of the run, by the names of `HEAD`; what it does not say is absent.
      rows: the evaluations that it tells, numbers ascending; read on demand, before the next run is.
      evaluations: how many the run had, if the file says so: numbers beyond the last row are known to be no better.
      place: where it stands, in words.
      where: returns the place of the row that was read last, if the format can tell.
    """

    head: dict[str, Any]
    rows: Iterable[Row]
    place: str
    evaluations: int = 0
    where: Callable[[], str] | None = None


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
      what: the format in a few words.
      suffix: of the file that is written; empty for a folder of files.
      write: writes a study to a path that is not there yet, and returns a sentence for each thing that is left out.
        Raises UserError.
      recognises: is a file with such first bytes, or a folder, of this format?
      read: yields the runs of a file. Raises ValueError that says where the file is wrong, and UserError for a format
        that holds no runs.
      tool: what makes such files, for the record of an imported run.
    """

    what: str
    suffix: str
    write: Callable[[StoredStudy, Path], list[str]]
    recognises: Callable[[Path, bytes], bool]
    read: Callable[[Path], Iterator[ForeignRun]]
    tool: str
