"""Parquet: the table of CSV, typed and compressed, one row group per run; read by pandas, polars, duckdb, R."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..recording.files import arrow, cells_of, reading
from . import records
from .formats import ForeignRun, Format
from .stored_study import StoredStudy

_BATCH = 10_000


def write(study: StoredStudy, path: Path) -> list[str]:
    """Write all runs into one file."""
    pyarrow, parquet = arrow()
    schema = _schema(pyarrow)
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        for run in study.runs:
            table = records.table(run).astype({"status": "str", "optimum": "float64"})
            file.write_table(pyarrow.Table.from_pandas(table, schema, preserve_index=False))
    return []


def _schema(pyarrow: Any) -> Any:  # noqa: ANN401 - a library that may be missing
    kinds = dict.fromkeys(("seed", "budget", "batch", "evaluation"), pyarrow.int64())
    kinds |= dict.fromkeys(("default", "optimum", "value"), pyarrow.float64())
    kinds |= dict.fromkeys(("strategy_seconds", "evaluation_seconds"), pyarrow.float32())
    return pyarrow.schema([(column, kinds.get(column, pyarrow.string())) for column in records.COLUMNS])


def recognises(path: Path, start: bytes) -> bool:
    """Return whether a file begins as Parquet does."""
    return start[:4] == b"PAR1"


def read(path: Path) -> Iterator[ForeignRun]:
    """Yield the runs of a table: a row for each evaluation, the rows of a run together.

    Raises:
      UserError: pyarrow is not installed.
      ValueError: with the row that is wrong.
    """
    yield from records.runs(_records(path))


def _records(path: Path) -> Iterator[records.Record]:
    number = 0
    with reading(path, path.stat().st_size) as file:
        if missing := records.missing(names := file.schema_arrow.names):
            raise ValueError(f"it has no column {missing[0]!r}; a table of runs has one row per evaluation")
        for batch in file.iter_batches(_BATCH):
            for cells in zip(*map(cells_of, batch.columns), strict=True):
                number += 1
                yield f"row {number}", dict(zip(names, cells, strict=True))


FORMAT = Format("the table of csv, typed and compressed", ".parquet", write, recognises, read, "Parquet")
