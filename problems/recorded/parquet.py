"""Parquet files as `record` writes them."""

from __future__ import annotations

import io

import numpy as np

from bbo_suite import Status
from bbo_suite.files import parse_json
from bbo_suite.recording.files import COLUMNS, KEY, arrow

from .fields import get, texts
from .table import Outcomes, Recording, recording

_STATUS = {status.word: status for status in Status}


def read(data: bytes) -> Recording:
    """Return the recording of a file that `record` wrote.

    Raises:
      UserError: pyarrow is not installed.
      ValueError: the file was not written by `record`, or is damaged.
    """
    pyarrow, parquet = arrow()
    try:
        content = parquet.read_table(io.BytesIO(data))
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"it is damaged ({str(error).splitlines()[0][:80]}); copy it again") from None
    stored_metadata = (content.schema.metadata or {}).get(KEY)
    if stored_metadata is None or not set(COLUMNS) <= set(content.column_names):
        raise ValueError(f"it has no columns {', '.join(COLUMNS)}; give a Parquet file that `record` wrote")
    metadata = parse_json(stored_metadata)
    unit, default = get(metadata, "unit", str, "its metadata"), get(metadata, "default", dict, "its metadata")
    names = [name for name in content.column_names if name not in COLUMNS]
    mixed = set(texts(metadata.get("as_text"), "'as_text' of its metadata"))
    columns = [
        [parse_json(value) for value in content[name].to_pylist()] if name in mixed else content[name].to_pylist()
        for name in names
    ]
    costs, words, reasons = (content[name].to_pylist() for name in COLUMNS)
    status = np.array([_STATUS.get(word, -1) for word in words], np.int8)
    values = np.where(status == Status.OK, np.array(costs, float), np.inf)
    if (status < 0).any() or not (values >= 0).all() or (np.isinf(values) & (status == Status.OK)).any():
        raise ValueError("one of its rows has an unknown status, or status ok without a cost")
    facts = {"format": "Parquet", "recorded problem": str(metadata.get("problem"))}
    measured = Outcomes(values, status, [reason or "" for reason in reasons])
    return recording(names, columns, measured, unit, default, facts)
