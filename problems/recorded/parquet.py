"""Parquet files as `record` writes them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from bbo_suite import Status
from bbo_suite.files.reading import parse_json
from bbo_suite.recording.files import COLUMNS, KEY, cells_of, reading

from .fields import get, texts
from .table import Outcomes, Recording, recording

_STATUS = {status.word: status for status in Status}


def read(data: bytes) -> Recording:
    """Return the recording of a file that `record` wrote.

    Raises:
      UserError: pyarrow is not installed.
      ValueError: the file was not written by `record`, or is damaged.
    """
    with reading(io.BytesIO(data), len(data)) as file:
        stored, names = (file.schema_arrow.metadata or {}).get(KEY), file.schema_arrow.names
        if stored is None or not set(COLUMNS) <= set(names):
            raise ValueError(f"it has no columns {', '.join(COLUMNS)}; give a Parquet file that `record` wrote")
        content = {
            name: [cell for chunk in column.chunks for cell in cells_of(chunk)] for name, column in _columns(file)
        }
    metadata = parse_json(stored)
    unit, default = get(metadata, "unit", str, "its metadata"), get(metadata, "default", dict, "its metadata")
    names = [name for name in names if name not in COLUMNS]
    mixed = set(texts(metadata.get("as_text"), "'as_text' of its metadata"))
    columns = [[parse_json(str(cell)) for cell in content[name]] if name in mixed else content[name] for name in names]
    costs, words, reasons = (content[name] for name in COLUMNS)
    status = np.array([_STATUS.get(word, -1) for word in words], np.int8)
    values = np.where(status == Status.OK, np.array(costs, float), np.inf)
    if (status < 0).any() or not (values >= 0).all() or (np.isinf(values) & (status == Status.OK)).any():
        raise ValueError("one of its rows has an unknown status, or status ok without a cost")
    facts = {"format": "Parquet", "recorded problem": str(metadata.get("problem"))}
    measured = Outcomes(values, status, [reason or "" for reason in reasons])
    return recording(names, columns, measured, unit, default, facts)


def _columns(file: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - a library that may be missing
    """Yield the name of each column and its cells, if they are numbers, texts or true and false."""
    table = file.read()
    for name in table.column_names:
        kind = str(table[name].type)
        if not re.match(r"u?int|float|double|halffloat|bool|dictionary<values=string", kind):
            raise ValueError(
                f"its column {name!r} holds {kind[:40]}; `record` writes numbers, texts, and true or false"
            )
        if table[name].null_count and name not in COLUMNS:
            raise ValueError(f"its column {name!r} has empty cells; every parameter needs a value")
        yield name, table[name]
