"""Reads files of measurements. The format is recognised by the content, not by the name, and nothing is executed.

Here are also the two formats that are no text: Parquet as `record` writes it, and TpuGraphs' npz (Phothilimthana et al.
2023) with tile sizes of one kernel, or layouts of one program, on a TPU.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Status
from bbo_suite.files.reading import largest_unpacked, parse_json, read_bounded
from bbo_suite.recording.files import COLUMNS, KEY, cells_of, reading

from ..reading import explained, unique_keys
from .catbench import COST, is_catbench, read_catbench
from .fields import get, texts
from .json_formats import complete_rows, read_kernel_tuner, read_ktt, read_t4
from .table import Codes, Outcomes, Recording, recording, with_default, with_fallback_default

LARGEST = 1 << 30
"""Largest text in bytes after unpacking; about 4 million configurations."""
_LARGEST_ARRAYS = 1 << 32
FORMATS = "a Kernel Tuner cache, T4, KTT output, a CATBench table, TpuGraphs npz, or Parquet written by `record`"


def read(path: Path) -> Recording:
    """Return the measurements in a file, with a default.

    Raises:
      UserError: it cannot be read, its format is unknown, or it is damaged; one sentence says what and where.
    """
    with explained(path, FORMATS):
        return with_fallback_default(_recording(read_bounded(path, LARGEST)))


def _recording(data: bytes) -> Recording:
    if data[:4] == b"PAR1":
        return read_parquet(data)
    if data[:2] == b"PK":
        return read_tpu_graphs(_arrays(data))
    if not data.strip():
        raise ValueError(f"it is empty; it must be {FORMATS}")
    text = getincrementaldecoder("utf-8-sig")().decode(data)  # half a character at the end is dropped
    return read_catbench(text) if is_catbench(text) else _from_json(text)


def _from_json(text: str) -> Recording:
    if text.lstrip()[:1] not in ("{", "["):
        raise ValueError(f"it is neither an object in JSON nor a table with a column {COST!r}; it must be {FORMATS}")
    try:
        document = parse_json(text, object_pairs_hook=unique_keys)
    except json.JSONDecodeError:
        document = complete_rows(text)
        if document is None:
            raise
    if not isinstance(document, dict):
        raise ValueError(f"its JSON is a list; it must be {FORMATS}")
    for key, read_format in (("cache", read_kernel_tuner), ("results", read_t4), ("Results", read_ktt)):
        if key in document:
            return read_format(document)
    if "ConfigurationSpace" in document:
        raise ValueError("it describes a space (T1) but holds no measurements; give the file of results")
    raise ValueError(f"its JSON has none of 'cache', 'results' and 'Results'; it must be {FORMATS}")


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


_TILE = [f"{part} {i}" for part in ("kernel", "output", "input") for i in (*range(6), "sum", "product")]


def read_tpu_graphs(arrays: Mapping[str, NDArray]) -> Recording:
    """Return the recording of a tile or a layout file; run times are nanoseconds.

    Raises:
      ValueError: it is neither, or its arrays do not fit together.
    """
    if "config_feat" in arrays:
        return _tile(arrays)
    if "node_config_feat" in arrays:
        return _layout(arrays)
    raise ValueError(
        "it has neither 'config_feat' (tiles) nor 'node_config_feat' (layouts), so it is not from TpuGraphs"
    )


def _tile(arrays: Mapping[str, NDArray]) -> Recording:
    """Read tile sizes.

    Run times come from several machines, so each is divided by the run time of the default on the same machine. These
    ratios are multiplied by the median run time of the default. The default is the configuration whose ratio is nearest
    to 1. Sums and products of sizes are left out if the sizes alone distinguish all configurations.
    """
    features = _array(arrays, "config_feat", 2)
    runtime, default = (_array(arrays, key, 1) for key in ("config_runtime", "config_runtime_normalizers"))
    _fit(features, runtime, default)
    if (default <= 0).any():
        raise ValueError(f"'config_runtime_normalizers' of row {int(np.argmin(default))} is not positive")
    ratios = runtime / default
    width = features.shape[1]
    names = _TILE if width == len(_TILE) else [f"feature {i}" for i in range(width)]
    sizes = [i for i, name in enumerate(names) if not name.endswith(("sum", "product"))]
    if len(np.unique(features[:, sizes], axis=0)) < len(np.unique(features, axis=0)):
        sizes = list(range(width))
    seconds = ratios * float(np.median(default)) / 1e9
    facts = {"format": "TpuGraphs tile sizes", "default's run times": f"{np.median(default):,.0f} ns in the median"}
    result = recording([names[i] for i in sizes], [features[:, i] for i in sizes], _measured(seconds), facts=facts)
    place = int(np.abs(result.costs - np.median(default) / 1e9).argmin())
    return with_default(result, place, "the configuration whose run time is nearest to that of the compiler's default")


def _layout(arrays: Mapping[str, NDArray]) -> Recording:
    """Read layouts: one parameter per configurable node; its values are the vectors that occur.

    The default leaves every layout to the compiler (-1 everywhere), if that was measured.
    """
    features, runtime = _array(arrays, "node_config_feat", 3), _array(arrays, "config_runtime", 1)
    ids = _array(arrays, "node_config_ids", 1)
    _fit(features, runtime)
    if len(ids) != features.shape[1]:
        raise ValueError(f"'node_config_ids' has {len(ids)} nodes, 'node_config_feat' {features.shape[1]}")
    columns = [_vectors(features[:, node]) for node in range(len(ids))]
    names = [f"node {node}" for node in ids.tolist()]
    facts = {"format": "TpuGraphs layouts", "nodes configured": f"{len(ids):,}"}
    automatic = np.flatnonzero((features == -1).all(axis=(1, 2)))[:1]
    default = None
    if len(automatic):
        default = {name: c.values[int(c.indices[automatic[0]])] for name, c in zip(names, columns, strict=True)}
    return recording(names, columns, _measured(runtime / 1e9), default=default, facts=facts)


def _vectors(features: NDArray) -> Codes:
    """Return `(c, f)` vectors as codes of texts: minor-to-major orders of output, input and kernel."""
    plain = (features == np.floor(features)).all() and features.min() >= -1 and features.max() <= 6
    if plain and features.shape[1] <= 20:  # three bits a number: one integer identifies a vector
        keys = (features.astype(np.int64) + 1) @ (8 ** np.arange(features.shape[1], dtype=np.int64))
        _, first, indices = np.unique(keys, return_index=True, return_inverse=True)
        distinct = features[first]
    else:
        distinct, indices = np.unique(features, axis=0, return_inverse=True)
    words = [" ".join(f"{number:g}" for number in vector) for vector in distinct.tolist()]
    return Codes(indices.reshape(-1), words)


def _array(arrays: Mapping[str, NDArray], name: str, dimensions: int) -> NDArray:
    if name not in arrays:
        raise ValueError(f"it has no array {name!r}")
    array = np.asarray(arrays[name])
    if array.ndim != dimensions or not array.size:
        raise ValueError(f"array {name!r} has shape {array.shape}; it must have {dimensions} dimensions, none empty")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"array {name!r} has type {array.dtype}, not numbers")
    if not np.isfinite(array).all():
        raise ValueError(f"array {name!r} holds NaN or infinity at {np.argwhere(~np.isfinite(array))[0].tolist()}")
    return array.astype(np.float64) if array.dtype == np.float16 else array  # seconds would be rounded to 0 in 16 bits


def _fit(features: NDArray, *others: NDArray) -> None:
    if any(len(other) != len(features) for other in others):
        lengths = ", ".join(str(len(array)) for array in (features, *others))
        raise ValueError(f"its arrays of configurations and of run times differ in length: {lengths}")


def _measured(seconds: NDArray[np.float64]) -> Outcomes:
    if (seconds < 0).any():
        raise ValueError(f"'config_runtime' of row {int(seconds.argmin())} is negative")
    return Outcomes(seconds, np.full(len(seconds), Status.OK, np.int8), [""] * len(seconds))


_STATUS = {status.word: status for status in Status}


def read_parquet(data: bytes) -> Recording:
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
    told = _told(metadata, content)
    names = [name for name in names if name not in COLUMNS and name not in told]
    mixed = set(texts(metadata.get("as_text"), "'as_text' of its metadata"))
    columns = [[parse_json(str(cell)) for cell in content[name]] if name in mixed else content[name] for name in names]
    costs, words, reasons = (content[name] for name in COLUMNS)
    status = np.array([_STATUS.get(word, -1) for word in words], np.int8)
    values = np.where(status == Status.OK, np.array(costs, float), np.inf)
    if (status < 0).any() or not (values >= 0).all() or (np.isinf(values) & (status == Status.OK)).any():
        raise ValueError("one of its rows has an unknown status, or status ok without a cost")
    facts = {"format": "Parquet", "recorded problem": str(metadata.get("problem"))}
    measured = Outcomes(values, status, [reason or "" for reason in reasons])
    return recording(names, columns, measured, unit, default, facts, told)


def _told(metadata: dict[str, Any], content: Mapping[str, list[Any]]) -> dict[str, list[float]]:
    """Return what compiling told, by name."""
    told = texts(metadata.get("statistics", []), "'statistics' of its metadata")
    for name in told:
        if name in COLUMNS or not all(isinstance(cell, (int, float)) for cell in content.get(name, [""])):
            raise ValueError(f"it has no column of numbers {name!r}, which 'statistics' of its metadata names")
    return {name: content[name] for name in told}


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
