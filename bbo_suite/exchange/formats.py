"""The interface of a file format, the known formats, and `export`: a stored study in the format of another tool.

What exporters read are the runs of a study, of which only one run's rows are in memory at a time.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import string
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.level import LEVEL
from ..errors import UserError
from ..files.reading import check_encoding, open_input
from ..files.writing import disk_errors
from ..registry import Registry
from ..store.folders import each_readable, run_folders
from ..store.remeasured import finalists
from ..store.rows import Row, RowLog
from ..store.stored_run import StoredRun, open_run

HEAD = (
    *("problem", "fingerprint", "strategy", "options", "seed", "budget", "batch"),
    *("unit", "default", "optimum", LEVEL),
)
"""The facts of a run that files hold besides its rows: its identity and the meaning of its costs."""

_DIGITS = string.digits + string.ascii_letters


@dataclass(frozen=True)
class StoredStudy:
    """The runs of a study, sorted by problem, strategy and seed, and the registry that has their problems."""

    name: str
    runs: tuple[StoredRun, ...]
    registry: Registry

    def by(self, *keys: str) -> Iterator[tuple[tuple[Any, ...], list[StoredRun]]]:
        """Yield groups of runs that agree in some keys of `run.json`, each with the values of these keys."""

        def of(run: StoredRun) -> tuple[Any, ...]:
            return tuple(run.head[key] for key in keys)

        yield from ((agreed, list(runs)) for agreed, runs in groupby(sorted(self.runs, key=of), key=of))


def stored_study(study: str, results: Path, registry: Registry) -> StoredStudy:
    """Return a stored study; damaged runs are left out and named.

    Raises:
      UserError: there is none, or every run of it is damaged.
    """
    runs = sorted(each_readable(run_folders(study, results), _checked), key=lambda run: run.name)
    return StoredStudy(study, tuple(runs), registry)


def _checked(folder: Path) -> StoredRun:
    """Return a run whose log was read once: an exporter that finds damage in the middle could not leave it out."""
    run = open_run(folder)
    deque(RowLog(folder).rows(), maxlen=0)
    finalists(folder)
    return run


def facts(run: StoredRun) -> dict[str, Any]:
    """Return the facts of a run that files hold besides its rows.

    Raises:
      UserError: one is missing.
    """
    if missing := [key for key in HEAD if key not in run.head]:
        raise UserError(f"{missing[0]!r} is missing in the run.json of {run.path}; restore it, or delete the folder")
    return {key: run.head[key] for key in HEAD}


def unpacked(run: StoredRun, text: str, digest: str) -> NDArray:
    """Return the `(d,)` indices of a packed candidate without its space: the reading that has the candidate's digest.

    `100` may be three digits or one number.

    Raises:
      UserError: no reading has the digest.
    """
    readings = [[_DIGITS.index(c) for c in text]] if set(text) <= set(_DIGITS) else []
    numbers = re.fullmatch(r"\d{1,18}(-\d{1,18})*", text, re.ASCII)
    readings += [[int(word) for word in text.split("-")]] if numbers else []
    for reading in filter(None, readings):
        for dtype in ("<i1", "<i2", "<i4", "<i8"):
            if max(reading) <= np.iinfo(dtype).max:
                row = np.array(reading, dtype)
                if hashlib.blake2b(row.tobytes(), digest_size=8).hexdigest() == digest:
                    return row
    raise UserError(f"{run.path} is damaged: the candidate {text[:40]!r} does not have the digest {digest}")


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
    if path.exists():
        raise UserError(f"{path} exists already; remove it or choose another --out")
    part = path.with_name(f"{path.name}.part")
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
