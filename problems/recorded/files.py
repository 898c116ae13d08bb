"""Reads files of measurements. The format is recognised by the content, not by the name, and nothing is executed."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from codecs import getincrementaldecoder
from pathlib import Path
from typing import Any

import numpy as np

from bbo_suite.files.reading import largest_unpacked, parse_json, read_bounded

from ..reading import explained
from . import parquet, tpu_graphs
from .json_formats import complete_rows, read_kernel_tuner, read_ktt, read_t4
from .table import Recording, with_fallback_default

LARGEST = 1 << 30
"""Largest text in bytes after unpacking; about 4 million configurations."""
_LARGEST_ARRAYS = 1 << 32
FORMATS = "a Kernel Tuner cache, T4, KTT output, TpuGraphs npz, or Parquet written by `record`"


def read(path: Path) -> Recording:
    """Return the measurements in a file, with a default.

    Raises:
      UserError: it cannot be read, its format is unknown, or it is damaged; one sentence says what and where.
    """
    with explained(path, FORMATS):
        return with_fallback_default(_recording(read_bounded(path, LARGEST)))


def _recording(data: bytes) -> Recording:
    if data[:4] == b"PAR1":
        return parquet.read(data)
    if data[:2] == b"PK":
        return tpu_graphs.read(_arrays(data))
    if not data.strip():
        raise ValueError(f"it is empty; it must be {FORMATS}")
    return _from_json(getincrementaldecoder("utf-8-sig")().decode(data))  # half a character at the end is dropped


def _from_json(text: str) -> Recording:
    try:
        document = parse_json(text, object_pairs_hook=_object)
    except json.JSONDecodeError:
        document = complete_rows(text)
        if document is None:
            raise
    if not isinstance(document, dict):
        raise ValueError(f"its JSON is {'a list' if isinstance(document, list) else 'a value'}; it must be {FORMATS}")
    for key, read_format in (("cache", read_kernel_tuner), ("results", read_t4), ("Results", read_ktt)):
        if key in document:
            return read_format(document)
    if "ConfigurationSpace" in document:
        raise ValueError("it describes a space (T1) but holds no measurements; give the file of results")
    raise ValueError(f"its JSON has none of 'cache', 'results' and 'Results'; it must be {FORMATS}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"key {twice[:60]!r} occurs twice in one object; drop one of the two")
    return document


def _arrays(data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file that are used; Python objects are refused, because unpickling may run code."""
    wanted = ("config_feat", "config_runtime", "config_runtime_normalizers", "node_config_feat", "node_config_ids")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            allowed = largest_unpacked(len(data), _LARGEST_ARRAYS)
            if sum(entry.file_size for entry in packed.infolist()) > allowed:
                raise ValueError(f"it unpacks to more than {allowed >> 20:,} MiB; take fewer configurations")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in wanted if name in arrays.files}
    except (zipfile.BadZipFile, EOFError, OSError, zlib.error, NotImplementedError, SyntaxError, TypeError):
        raise ValueError("it is an npz file that is truncated or damaged; copy it again") from None
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise ValueError("it holds Python objects, which may run code; save arrays of numbers instead") from None
        raise
