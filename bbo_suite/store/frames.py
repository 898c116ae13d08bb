"""Stored runs as pandas frames: the fast reader, which trusts the lines (`rows.read_rows` checks them)."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .folders import ROWS, each_readable, run_folders
from .identity import read_head
from .rows import COLUMNS, HEADER, STATUS

if TYPE_CHECKING:
    import pandas as pd

TEXTS = ("digest", "config", "reason")
"""The columns of text. They take most of the memory of a large frame, and few readers need them."""
PIECE = 1 << 22
"""Bytes of a log that are parsed at a time."""
_FIXED = ("problem", "strategy", "seed", "default", "budget", "unit", "uses_structure", "parameters")
"""Columns that are constant within a run."""
_TYPES: dict[str, Any] = {
    **dict.fromkeys(TEXTS, "str"),
    **{"evaluation": "int32", "value": "float64", "strategy_seconds": "float32", "evaluation_seconds": "float32"},
}


def rows(path: Path, texts: Collection[str] = TEXTS) -> pd.DataFrame:
    """Return the complete rows of one run's folder, also while it is written; columns as in `rows.csv`.

    Args:
      texts: which of the columns of text to read.

    Raises:
      UserError: the file is damaged.
    """
    import pandas as pd

    parts = list(pieces(path, texts))
    frame = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    return frame.astype({name: "category" for name in ("config", "reason") if name in texts})


def pieces(path: Path, texts: Collection[str] = TEXTS) -> Iterator[pd.DataFrame]:
    """Yield the complete rows of one run's folder in one or more frames, so that a long log needs little memory.

    Raises:
      UserError: the file is damaged.
    """
    file = path / ROWS
    with file.open("rb") if file.exists() else io.BytesIO() as log:
        cut = log.readline()
        header = cut if cut.endswith(b"\n") else HEADER.encode()
        cut, first = b"", True
        while (data := log.read(PIECE)) or first:
            whole, _, cut = (cut + data).rpartition(b"\n")
            yield _piece(file, header + whole, texts)
            first = False


def _piece(file: Path, text: bytes, texts: Collection[str]) -> pd.DataFrame:
    import pandas as pd

    statuses = pd.CategoricalDtype(list(STATUS))  # the same for all runs, so cheap to join
    types = {name: _TYPES.get(name, statuses) for name in COLUMNS[:-1] if name not in TEXTS or name in texts}
    how: dict[str, Any] = {"keep_default_na": False, "low_memory": False, **_exact()}
    try:
        return pd.read_csv(io.BytesIO(text), usecols=list(types), dtype=types, **how)
    except ValueError as error:
        remedy = "restore it, or run the study again, which names the line"
        raise UserError(f"{file} is damaged ({error}); {remedy}") from None


@cache
def _exact() -> dict[str, Any]:
    """Return the options with which pandas reads floats to the last digit, its default since 3.1."""
    import pandas as pd

    new = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    return {} if new else {"float_precision": "round_trip"}


def load(study: str, results: Path | str = "results", texts: Collection[str] = (), only: str = "*") -> pd.DataFrame:
    """Return every evaluation of a study, one row each; damaged runs are left out and named on standard error.

    Columns: problem, strategy, seed, evaluation, value, status, speedup (the default's cost over the best cost so
    far), strategy_seconds, evaluation_seconds, default, budget, unit, uses_structure, parameters (their number), and
    the texts.

    Args:
      texts: which of digest, config and reason to read; they double the memory and the time of a large study.
      only: the folder of one run, or a pattern of folders; all by default.

    Raises:
      UserError: there is no such study, or every run of it is damaged.
    """
    paths = [path for path in run_folders(study, results) if path.match(only)]

    def read(path: Path) -> tuple[dict[str, Any], pd.DataFrame]:
        head, frame = read_head(path), rows(path, texts)
        return described(path, head), frame

    return joined(each_readable(paths, read))


def described(path: Path, head: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a run's `run.json` with the number of parameters, which older ones lack."""
    return {"parameters": _parameters(path), **head}


def joined(runs: Sequence[tuple[dict[str, Any], pd.DataFrame]]) -> pd.DataFrame:
    """Return the frame of a study from each run's description and rows. The columns of the rows are removed."""
    import pandas as pd

    heads, parts = [head for head, _ in runs], [part for _, part in runs]
    lengths = [len(part) for part in parts]
    for head, part in runs:
        part["speedup"] = head["default"] / part["value"].cummin()
    columns: dict[str, Any] = {str(name): _joined(parts, str(name)) for name in list(parts[0])}
    columns |= {name: _repeated([head[name] for head in heads], lengths) for name in _FIXED}
    return pd.DataFrame(columns, copy=False)


def _joined(parts: list[pd.DataFrame], name: str) -> pd.Series:
    """Remove a column from all parts and join it, so that only one column at a time is in memory twice."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    taken: list[pd.Series] = [part.pop(name) for part in parts]
    if taken[0].dtype == "category":
        return pd.Series(union_categoricals(taken))
    return pd.concat(taken, ignore_index=True)


def _repeated(values: list[Any], lengths: list[int]) -> Any:  # noqa: ANN401 - an array of numpy or of pandas
    """Return a column that is constant in each run, text as a category."""
    import numpy as np
    import pandas as pd

    if isinstance(values[0], str):
        return pd.Categorical([printable(value) for value in values]).repeat(lengths)
    column = np.array(values)
    small = column.dtype.kind == "i" and abs(column).max() < 2**31
    return np.repeat(column.astype(np.int32) if small else column, lengths)


def printable(text: str) -> str:
    """Return text without lone surrogates, which represent undecodable bytes of a file name: Arrow refuses them."""
    return text.encode(errors="backslashreplace").decode()


def _parameters(path: Path) -> int:
    """Return the number of parameters from a run's first row, the only source in older runs."""
    with (path / ROWS).open(encoding="utf-8", errors="replace") if (path / ROWS).exists() else io.StringIO() as file:
        config = next(islice(file, 1, None), "," * len(COLUMNS)).split(",")[COLUMNS.index("config")]
    return config.count("-") + 1 if "-" in config else len(config)
