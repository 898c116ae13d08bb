"""The interface of a file format, the known formats, and `export`: a stored study in the format of another tool."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..files.reading import check_encoding, open_input
from ..files.writing import disk_errors
from ..registry import Registry
from ..store.rows import Row
from .stored_study import StoredStudy, stored_study

FORMATS = {
    "ioh": "ioh:IOH",
    "t4": "write_only:T4",
    "kernel-tuner": "write_only:KERNEL_TUNER",
    "parquet": "table:PARQUET",
    "csv": "table:CSV",
    "optuna": "optuna_journal:OPTUNA",
    "digests": "write_only:DIGESTS",
}
"""The module and the constant of each format by the name that `--to` takes; to add one, add a line here and a file."""


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


def named(name: str) -> Format:
    """Return the format of a name in `FORMATS`."""
    module, _, constant = FORMATS[name].partition(":")
    return getattr(import_module(f".{module}", __package__), constant)


def recognised(path: Path) -> tuple[str, Format]:
    """Return the name and the format of a file or folder, recognised by its content.

    Raises:
      UserError: it cannot be read, or has no known format.
    """
    try:
        with open_input(path) as file:
            check_encoding(start := file.read(4096))
    except OSError as error:
        if not path.is_dir():
            raise UserError(f"cannot read {path}: {error.strerror or error}") from None
        start = b""
    except ValueError as error:
        raise UserError(f"cannot import {path}: {error}") from None
    for name in FORMATS:
        if (found := named(name)).recognises(path, start):
            return name, found
    if not start and not path.is_dir():
        raise UserError(f"cannot import {path}: it is empty")
    if why := import_module(".table", __package__).lacks(path, start):
        raise UserError(f"cannot import {path}: {why}")
    tables = "CSV or Parquet with a row for each evaluation, the columns evaluation and value at least"
    known = f"IOHprofiler data, {tables}, or an Optuna storage"
    raise UserError(f"cannot import {path}: it is not {known}")


def export(study: str, to: str, out: Path | None, results: Path, registry: Registry) -> tuple[Path, list[str]]:
    """Write a study in a format of `FORMATS`; return the path and a sentence for each thing left out.

    The file has the suffix `.part` until it is complete.

    Args:
      out: the file, or the folder if the format has many files; by default in the study's folder.

    Raises:
      UserError: there is no such study, it is damaged, or the path exists already.
    """
    file_format, source = named(to), stored_study(study, results, registry)
    path = (
        results / study / "export" / f"{to if not file_format.suffix else study}{file_format.suffix}"
        if out is None
        else out
    )
    part = path.with_name(f"{path.name}.part")
    if path.exists():
        raise UserError(f"{path} exists already; remove it or choose another --out")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove(part)
        try:
            notes = file_format.write(source, part)
            part.replace(path)
        except ValueError as error:
            raise UserError(f"cannot export study {study!r} from {results}: {error}") from None
        finally:
            _remove(part)
    return path, notes


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
