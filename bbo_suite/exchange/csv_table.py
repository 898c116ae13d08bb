"""CSV: one row per evaluation, self-contained; read by pandas, R, spreadsheets and IOHanalyzer's own reader of CSV."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from ..files.reading import GZIP, unpacked
from ..store.run_table import escape_formulas, unescape_formula
from . import records
from .formats import ForeignRun, Format
from .stored_study import StoredStudy

_LONGEST = 1 << 23
"""Most characters of a line or a cell: packed candidates of very large spaces are long."""
_LARGEST = 1 << 36
"""Most bytes of an unpacked table."""


def write(study: StoredStudy, path: Path) -> list[str]:
    """Write all runs one after another; gzipped if the name ends in .gz."""
    packed = path.name.removesuffix(".part").endswith(".gz")
    with (gzip.open if packed else open)(path, "wt", encoding="utf-8", newline="") as file:
        for number, run in enumerate(study.runs):
            header = not number  # all texts are quoted: otherwise a lone carriage return would not be
            escape_formulas(records.table(run)).to_csv(
                file, index=False, header=header, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
            )
    return []


def recognises(path: Path, start: bytes) -> bool:
    """Return whether the first line is a header with the required columns."""
    return not records.missing(_columns(_header(path, start), ","))


def lacks(path: Path, start: bytes) -> str:
    """Return why a table is not recognised; empty if the file is not a table of runs at all."""
    header = _header(path, start)
    for delimiter in ";\t|":
        if not records.missing(_columns(header, delimiter)):
            return f"its columns are separated by {delimiter!r}; separate them by commas"
    missing = records.missing(_columns(header, ","))
    return (
        f"its table has no column {missing[0]!r}; {' and '.join(records.NEEDED)} are needed"
        if len(missing) == 1
        else ""
    )


def _columns(header: str, delimiter: str) -> list[str]:
    return [column.strip('"') for column in header.split(delimiter)]


def _header(path: Path, start: bytes) -> str:
    if start[:2] == GZIP:
        with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
            start = file.read(4096)
    return start.decode("utf-8-sig", errors="replace").partition("\n")[0].strip("\r")


def read(path: Path) -> Iterator[ForeignRun]:
    """Yield the runs of a table: a row for each evaluation, the rows of a run together.

    Raises:
      ValueError: with the line that is wrong.
    """
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
        file.seek(0)
        plain = unpacked(file, _LARGEST) if packed else file
        yield from records.runs(_records(io.TextIOWrapper(plain, "utf-8-sig", newline="")))


def _records(file: TextIO) -> Iterator[records.Record]:
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(_lines(file), strict=True)
    try:
        columns = next(reader)
        for cells in reader:
            place = f"line {reader.line_num}"
            if len(cells) != len(columns):
                raise ValueError(f"{place} has {len(cells)} fields and the header {len(columns)}; is it cut off?")
            yield place, dict(zip(columns, map(unescape_formula, cells), strict=True))
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} is not CSV ({error})") from None
    except UnicodeDecodeError:
        raise ValueError(f"it is not UTF-8 text, somewhere after line {reader.line_num}") from None


def _lines(file: TextIO) -> Iterator[str]:
    """Yield the lines; one without an end is not read to the end."""
    while line := file.readline(_LONGEST):
        if len(line) == _LONGEST:
            raise ValueError(f"it has a line of more than {_LONGEST:,} characters; no row of a run is that long")
        yield line


FORMAT = Format("a table, one row per evaluation", ".csv", write, recognises, read, "CSV")
