"""Writing measurements as T4, the JSON format of auto-tuners (github.com/odgaard/TuningSchema), or as Parquet."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.libraries import require
from ..core.problem import Status
from ..core.space import Space
from ..errors import UserError
from ..files.reading import largest_unpacked

INVALIDITY = {
    Status.OK: "correct",
    Status.FORBIDDEN: "constraints",
    Status.COMPILE_ERROR: "compile",
    Status.RUNTIME_ERROR: "runtime",
    Status.TIMEOUT: "timeout",
    Status.WRONG_RESULT: "correctness",
}
"""T4's name of each status."""
COLUMNS = ("cost", "status", "reason")
"""The columns of Parquet besides the parameters."""
KEY = b"bbo_suite"
"""The key of the metadata in Parquet."""

_MOST_CELLS = 1 << 32

Outcome = tuple[float, int, str]
"""Cost, status, reason."""


@dataclass(frozen=True)
class Measurements:
    """The measurements to write.

    Attributes:
      space: the space of the configurations.
      columns: the parameters that vary, c of them; the others keep their default.
      configs: `(n, d)` configurations.
      outcomes: the outcome of each configuration.
      metadata: facts, as JSON.
      unit: the unit of the costs.
      default: `(d,)` the default configuration; None if it is not among the configurations.
      statistics: what compiling tells of each configuration, by name; nan for one that cannot be compiled.
    """

    space: Space
    columns: Sequence[int]
    configs: NDArray
    outcomes: Sequence[Outcome]
    metadata: dict[str, Any]
    unit: str
    default: NDArray | None
    statistics: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def described(self) -> tuple[list[str], list[list[Any]]]:
        """Return the names of the parameters that vary, and their values by index, as JSON types."""
        names = [self.space.name(i) for i in self.columns]
        unique = len(set(names)) == len(names) and not set(names) & {*COLUMNS, *self.statistics}
        names = names if unique else [f"{name} ({i})" for i, name in zip(self.columns, names, strict=True)]
        return names, [_plain(self.space.values(i)) for i in self.columns]


def _plain(values: Sequence[Any]) -> list[Any]:
    """Return values as JSON types; indices if JSON types would not be distinct."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    plain = [value if isinstance(value, (bool, int, float, str, NoneType)) else str(value) for value in plain]
    finite = all(np.isfinite(value) for value in plain if isinstance(value, float))
    numbers = [value for value in plain if not isinstance(value, (bool, str))]
    distinct = len(set(numbers)) + len({(type(v), v) for v in plain if isinstance(v, (bool, str))}) == len(plain)
    return plain if distinct and finite else list(range(len(plain)))


def writer(path: Path) -> Callable[[Path, Measurements], None]:
    """Return the function that writes the file, chosen by the name's extension.

    Raises:
      UserError: the extension is unknown, or a library is missing.
    """
    if path.name.endswith((".json", ".json.gz")):
        return write_t4
    if path.suffix == ".parquet":
        arrow()
        return write_parquet
    raise UserError(f"the name {path} does not end in a known format; name it .json or .json.gz (T4) or .parquet")


def write_t4(path: Path, measurements: Measurements) -> None:
    """Write T4, gzipped if the name ends in .gz; equal measurements give equal bytes."""
    names, values = measurements.described()
    lines = [json.dumps(t4_result(measurements, names, values, i)) for i in range(len(measurements.outcomes))]
    head = json.dumps({"metadata": _metadata(measurements, names, values), "schema_version": "1.0.0"})
    data = "".join([head[:-1], ', "results": [\n', ",\n".join(lines), "\n]}\n"]).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def t4_result(measurements: Measurements, names: list[str], values: list[list[Any]], i: int) -> dict[str, Any]:
    """Return measurement `i` in T4's format; `names` and `values` are from `described`."""
    cost, status, reason = measurements.outcomes[i]
    worked = status == Status.OK
    return {
        "configuration": _config(measurements, names, values, measurements.configs[i]),
        "times": {"runtimes": [cost]} if worked and measurements.unit == "seconds" else {},
        "invalidity": INVALIDITY[Status(status)],
        "correctness": int(worked),
        "measurements": [
            {"name": "cost", "value": cost if worked else reason, "unit": measurements.unit},
            *({"name": n, "value": v, "unit": ""} for n, v in _told(measurements, i)),
        ],
        "objectives": ["cost"],
    }


def _told(measurements: Measurements, i: int) -> Iterator[tuple[str, float]]:
    """Yield name and value of what compiling tells of a configuration."""
    for name, numbers in measurements.statistics.items():
        if np.isfinite(value := float(numbers[i])):
            yield name, int(value) if value.is_integer() else value


def _metadata(measurements: Measurements, names: list[str], values: list[list[Any]]) -> dict[str, Any]:
    default = (
        {} if measurements.default is None else {"default": _config(measurements, names, values, measurements.default)}
    )
    told = {"statistics": list(measurements.statistics)} if measurements.statistics else {}
    return measurements.metadata | {"unit": measurements.unit} | told | default


def _config(measurements: Measurements, names: list[str], values: list[list[Any]], row: NDArray) -> dict[str, Any]:
    return {name: labels[row[i]] for name, labels, i in zip(names, values, measurements.columns, strict=True)}


def write_parquet(path: Path, measurements: Measurements) -> None:
    """Write a table with one column per parameter, `COLUMNS` and statistics; what no column holds becomes JSON."""
    pyarrow, parquet = arrow()
    names, values = measurements.described()
    mixed = {name for name, labels in zip(names, values, strict=True) if not _fit_a_column(labels)}
    table: dict[str, list[Any]] = {}
    for name, labels, i in zip(names, values, measurements.columns, strict=True):
        cells = [json.dumps(value) for value in labels] if name in mixed else labels
        table[name] = [cells[index] for index in measurements.configs[:, i].tolist()]
    costs, status, reasons = zip(*measurements.outcomes, strict=True)
    table |= {"cost": list(costs), "status": [Status(s).word for s in status], "reason": list(reasons)}
    table |= {name: numbers.tolist() for name, numbers in measurements.statistics.items()}
    metadata = _metadata(measurements, names, values) | {"as_text": sorted(mixed)}
    parquet.write_table(pyarrow.table(table).replace_schema_metadata({KEY: json.dumps(metadata)}), path)


def _fit_a_column(values: Sequence[Any]) -> bool:
    """Return whether values are of one type of Parquet, whose integers have 64 bits."""
    kinds = {type(value) for value in values}
    return (
        len(kinds) == 1
        and type(None) not in kinds
        and (int not in kinds or all(-(1 << 63) <= v < 1 << 63 for v in values))
    )


def arrow() -> tuple[Any, Any]:
    """Return the modules `pyarrow` and `pyarrow.parquet`.

    Raises:
      UserError: pyarrow is not installed.
    """
    require("pyarrow", "Parquet", "bbo_suite[parquet]")
    import pyarrow
    import pyarrow.parquet

    return pyarrow, pyarrow.parquet


@contextmanager
def reading(source: Path | io.BytesIO, size: int) -> Iterator[Any]:
    """Yield a `pyarrow.parquet.ParquetFile` that holds equal texts once: a few bytes may stand for a million of them.

    Args:
      size: bytes of the source.

    Raises:
      UserError: pyarrow is not installed.
      ValueError: it is damaged, has several columns of one name, or far more cells than bytes.
    """
    pyarrow, parquet = arrow()
    try:
        with parquet.ParquetFile(source) as file:
            names, cells = file.schema_arrow.names, file.metadata.num_rows * file.metadata.num_columns
            texts = [field.name for field in file.schema_arrow if field.type == pyarrow.string()]
        if len(set(names)) < len(names):
            raise ValueError("two of its columns have the same name; rename one")
        if cells > (most := largest_unpacked(size, _MOST_CELLS)):
            raise ValueError(f"it has {cells:,} cells, and at most {most:,} are read from a file of its size; split it")
        with parquet.ParquetFile(source, read_dictionary=texts) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"it is damaged ({str(error).splitlines()[0][:80]}); copy it again") from None


def cells_of(column: Any) -> list[Any]:  # noqa: ANN401 - a library that may be missing
    """Return the cells of a `pyarrow` array; equal texts are one object."""
    if not hasattr(column, "dictionary"):
        return column.to_pylist()
    column.validate(full=True)  # indices of a damaged file may be out of range
    texts = column.dictionary.to_pylist()
    return [None if index is None else texts[index] for index in column.indices.to_pylist()]
