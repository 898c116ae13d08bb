"""The interface of a file format, and a run as a foreign file describes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..store.rows import Row

if TYPE_CHECKING:
    from .stored_study import StoredStudy


@dataclass(frozen=True)
class ForeignRun:
    """A run as a file describes it.

    Attributes:
      head: the facts of the run by the names of `stored_study.HEAD`; unknown ones are absent.
      rows: its evaluations, numbers ascending; read on demand, before the next run.
      evaluations: the length of the run, if the file says it: evaluations after the last row were no better.
      place: where it is in the file, in words.
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
      what: a short description.
      suffix: of the file that is written; empty for a folder of files.
      write: writes a study to a new path and returns a sentence for each thing left out.
        Raises UserError.
      recognises: returns whether a file with such first bytes, or a folder, has this format.
      read: yields the runs of a file. Raises ValueError that says where the file is wrong, and UserError if the format
        holds no runs.
      tool: the program that makes such files, noted in imported runs.
    """

    what: str
    suffix: str
    write: Callable[[StoredStudy, Path], list[str]]
    recognises: Callable[[Path, bytes], bool]
    read: Callable[[Path], Iterator[ForeignRun]]
    tool: str
