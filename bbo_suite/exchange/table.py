"""A table with one row per evaluation, as CSV or Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..core.level import LEVEL, OLDER_FLAGS, Level
from ..files.reading import GZIP, parse_json, unpacked
from ..recording.files import arrow, cells_of, reading
from ..store.rows import STATUS, Row
from ..store.run_table import escape_formulas, unescape_formula
from ..store.stored_run import StoredRun
from .formats import HEAD, ForeignRun, Format, StoredStudy, facts

if TYPE_CHECKING:
    import pandas as pd

ROW = ("evaluation", "digest", "value", "status", "strategy_seconds", "evaluation_seconds", "config", "reason")
COLUMNS = (*HEAD, *ROW)
NEEDED = ("evaluation", "value")
"""The columns without which a table holds no runs."""

Record = tuple[str, dict[str, Any]]
"""The place of an evaluation in its file, and its cells by column."""


def _table(run: StoredRun) -> pd.DataFrame:
    """Return a run's rows, each with the facts of the run; `options` is JSON."""
    frame = run.frame()
    for key, value in (facts(run) | {"options": json.dumps(run.head["options"])}).items():
        frame[key] = math.nan if value is None else value
    return frame[list(COLUMNS)]


def _missing(columns: Collection[str]) -> list[str]:
    """Return the columns without which a table holds no runs."""
    return [column for column in NEEDED if column not in columns]


def _runs(records: Iterator[Record]) -> Iterator[ForeignRun]:
    """Yield the runs of a table, in which the rows of a run are consecutive.

    Raises:
      ValueError: a cell has the wrong type; the message names its place.
    """
    for _, group in groupby(records, key=lambda record: [str(record[1].get(key)) for key in HEAD]):
        yield _run(group)


def _run(group: Iterator[Record]) -> ForeignRun:
    first = next(group)
    rows = _Rows(chain([first], group))
    return ForeignRun(_head(*first), rows, first[0], where=rows.where)


class _Rows:
    """The rows of records, and the place of the last one."""

    def __init__(self, group: Iterator[Record]) -> None:
        self._records, self._place = group, ""

    def __iter__(self) -> Iterator[Row]:
        for place, record in self._records:
            self._place = place
            yield _row(place, record)

    def where(self) -> str:
        return self._place


def _head(place: str, record: dict[str, Any]) -> dict[str, Any]:
    known = (*HEAD, *OLDER_FLAGS)
    head = {key: _fact(place, key, record[key]) for key in known if record.get(key) not in (None, "")}
    if {*OLDER_FLAGS} & {*head}:
        head[LEVEL] = Level.of(head).word
    return {key: value for key, value in head.items() if value is not None}


def _fact(place: str, key: str, cell: Any) -> Any:  # noqa: ANN401 - a fact of any type
    """Return the fact that a cell holds; None for NaN, which stands for an unknown number."""
    try:
        if key in ("seed", "budget", "batch"):
            return int(cell)
        if key in ("default", "optimum"):
            return None if math.isnan(float(cell)) else float(cell)
        if key in OLDER_FLAGS:
            return {"true": True, "false": False}[str(cell).lower()]
        return parse_json(cell) if key == "options" else str(cell)
    except (ValueError, KeyError, TypeError, OverflowError):
        raise _wrong(place, key, cell) from None


def _row(place: str, record: dict[str, Any]) -> Row:
    value = _number(place, record, "value", math.nan)
    word = record.get("status") or ("ok" if math.isfinite(value) else "runtime_error")
    if word not in STATUS:
        raise _wrong(place, "status", word)
    number = _number(place, record, "evaluation", math.nan)
    if not number.is_integer():
        raise _wrong(place, "evaluation", record["evaluation"])
    digest, config, reason = (str(record.get(key) or "") for key in ("digest", "config", "reason"))
    strategy, evaluation = (_number(place, record, f"{whose}_seconds", 0.0) for whose in ("strategy", "evaluation"))
    return Row(int(number), digest, value, STATUS[word], strategy, evaluation, config, reason)


def _number(place: str, record: dict[str, Any], key: str, otherwise: float) -> float:
    cell = record.get(key)
    try:
        return otherwise if cell in (None, "") else float(cell)
    except (ValueError, TypeError):
        raise _wrong(place, key, cell) from None


def _wrong(place: str, key: str, cell: Any) -> ValueError:  # noqa: ANN401 - whatever stands there
    return ValueError(f"{place} has {str(cell)[:60]!r} as its {key}")


_LONGEST = 1 << 23
"""Most characters of a line or a cell: packed candidates of very large spaces are long."""
_LARGEST = 1 << 36
"""Most bytes of an unpacked table."""


def _write_csv(study: StoredStudy, path: Path) -> list[str]:
    """Write all runs one after another; gzipped if the name ends in .gz."""
    packed = path.name.removesuffix(".part").endswith(".gz")
    with (gzip.open if packed else open)(path, "wt", encoding="utf-8", newline="") as file:
        for number, run in enumerate(study.runs):
            header = not number  # all texts are quoted: otherwise a lone carriage return would not be
            escape_formulas(_table(run)).to_csv(
                file, index=False, header=header, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
            )
    return []


def _recognises_csv(path: Path, start: bytes) -> bool:
    """Return whether the first line is a header with the required columns."""
    return not _missing(_columns(_header(path, start), ","))


def lacks(path: Path, start: bytes) -> str:
    """Return why a table is not recognised; empty if the file is not a table of runs at all."""
    header = _header(path, start)
    for delimiter in ";\t|":
        if not _missing(_columns(header, delimiter)):
            return f"its columns are separated by {delimiter!r}; separate them by commas"
    missing = _missing(_columns(header, ","))
    return f"its table has no column {missing[0]!r}; {' and '.join(NEEDED)} are needed" if len(missing) == 1 else ""


def _columns(header: str, delimiter: str) -> list[str]:
    return [column.strip('"') for column in header.split(delimiter)]


def _header(path: Path, start: bytes) -> str:
    if start[:2] == GZIP:
        with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
            start = file.read(4096)
    return start.decode("utf-8-sig", errors="replace").partition("\n")[0].strip("\r")


def _read_csv(path: Path) -> Iterator[ForeignRun]:
    """Yield the runs of a table: a row for each evaluation, the rows of a run together.

    Raises:
      ValueError: with the line that is wrong.
    """
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
        file.seek(0)
        plain = unpacked(file, _LARGEST) if packed else file
        yield from _runs(_csv_records(io.TextIOWrapper(plain, "utf-8-sig", newline="")))


def _csv_records(file: TextIO) -> Iterator[Record]:
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(_lines(file), strict=True)
    try:
        columns = next(reader)
        if twice := [name for place, name in enumerate(columns) if name in columns[:place]]:
            raise ValueError(f"its header names column {twice[0][:60]!r} twice; drop one of the two")
        for cells in filter(None, reader):  # without blank lines
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


CSV = Format("a table, one row per evaluation", ".csv", _write_csv, _recognises_csv, _read_csv, "CSV")


_BATCH = 10_000


def _write_parquet(study: StoredStudy, path: Path) -> list[str]:
    """Write all runs into one file."""
    pyarrow, parquet = arrow()
    schema = _schema(pyarrow)
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        for run in study.runs:
            rows = _table(run).astype({"status": "str", "optimum": "float64"})
            file.write_table(pyarrow.Table.from_pandas(rows, schema, preserve_index=False))
    return []


def _schema(pyarrow: Any) -> Any:  # noqa: ANN401 - a library that may be missing
    kinds = dict.fromkeys(("seed", "budget", "batch", "evaluation"), pyarrow.int64())
    kinds |= dict.fromkeys(("default", "optimum", "value"), pyarrow.float64())
    kinds |= dict.fromkeys(("strategy_seconds", "evaluation_seconds"), pyarrow.float32())
    return pyarrow.schema([(column, kinds.get(column, pyarrow.string())) for column in COLUMNS])


def _recognises_parquet(path: Path, start: bytes) -> bool:
    """Return whether a file begins as Parquet does."""
    return start[:4] == b"PAR1"


def _read_parquet(path: Path) -> Iterator[ForeignRun]:
    """Yield the runs of a table: a row for each evaluation, the rows of a run together.

    Raises:
      UserError: pyarrow is not installed.
      ValueError: with the row that is wrong.
    """
    yield from _runs(_parquet_records(path))


def _parquet_records(path: Path) -> Iterator[Record]:
    number = 0
    with reading(path, path.stat().st_size) as file:
        if missing := _missing(names := file.schema_arrow.names):
            raise ValueError(f"it has no column {missing[0]!r}; a table of runs has one row per evaluation")
        for batch in file.iter_batches(_BATCH):
            for cells in zip(*map(cells_of, batch.columns), strict=True):
                number += 1
                yield f"row {number}", dict(zip(names, cells, strict=True))


PARQUET = Format(
    "the table of csv, typed and compressed", ".parquet", _write_parquet, _recognises_parquet, _read_parquet, "Parquet"
)
