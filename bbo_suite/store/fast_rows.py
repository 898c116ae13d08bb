"""The fast reader of `rows.csv`, of many runs at once. It trusts the lines, which `rows.read_rows` checks."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .folders import ROWS
from .rows import COLUMNS, HEADER, STATUS, open_log

if TYPE_CHECKING:
    import pandas as pd

TEXTS = ("digest", "config", "reason")
"""The columns of text. They take most of the memory of a large frame, and few readers need them."""
_TYPES: dict[str, Any] = {
    **dict.fromkeys(TEXTS, "str"),
    **{"evaluation": "int32", "value": "float64", "strategy_seconds": "float32", "evaluation_seconds": "float32"},
}
PIECE = 1 << 22
"""Bytes that are parsed at a time: of one log, so that a long one needs little memory, or of several short ones."""


@dataclass(frozen=True)
class Part:
    """The rows of some runs, one run after the other: `lengths[i]` rows of `paths[i]`."""

    paths: Sequence[Path]
    lengths: Sequence[int]
    frame: pd.DataFrame


def rows(path: Path, texts: Collection[str] = TEXTS) -> pd.DataFrame:
    """Return the complete rows of one run's folder, also while it is written; columns as in `rows.csv`.

    Args:
      texts: which of the columns of text to read.

    Raises:
      UserError: the file is damaged.
    """
    import pandas as pd

    frames = list(pieces(path, texts))
    return _compact(pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0])


def pieces(path: Path, texts: Collection[str] = TEXTS) -> Iterator[pd.DataFrame]:
    """Yield the complete rows of one run's folder in one or more frames, so that a long log needs little memory.

    Raises:
      UserError: the file is damaged.
    """
    with open_log(path) as log:
        cut = log.readline()
        header = cut if cut.endswith(b"\n") else HEADER.encode()
        cut, first = b"", True
        while (data := log.read(PIECE)) or first:
            whole, _, cut = (cut + data).rpartition(b"\n")
            try:
                yield _parsed(header + whole, texts)
            except ValueError as error:
                remedy = "restore it, or run the study again, which names the line"
                raise UserError(f"{path / ROWS} is damaged ({error}); {remedy}") from None
            first = False


def parts(paths: Iterable[Path], texts: Collection[str], errors: list[UserError]) -> Iterator[Part]:
    """Yield the complete rows of runs, given by their folders, in their order.

    Short logs are parsed together, because each call of the parser costs as much as thousands of rows.

    Args:
      errors: takes the error of each damaged run, which is left out.
    """
    for group in _groups(paths):
        part = _together(group, texts)
        if part:
            yield part
        else:
            yield from _singly(group, texts, errors)


def _groups(paths: Iterable[Path]) -> Iterator[list[Path]]:
    """Yield the runs in groups whose logs have the size of a piece together, or one whose log is longer."""
    group: list[Path] = []
    total = 0
    for path in paths:
        file = path / ROWS
        size = file.stat().st_size if file.exists() else 0
        if group and total + size > PIECE:
            yield group
            group, total = [], 0
        group.append(path)
        total += size
    if group:
        yield group


def _together(paths: Sequence[Path], texts: Collection[str]) -> Part | None:
    """Return the rows of several runs; None if one of them has to be read alone, to say that it is damaged."""
    try:
        files = [_content(path) for path in paths]
    except UserError:
        return None
    files = [data[: data.rfind(b"\n") + 1] or HEADER.encode() for data in files]
    header = files[0][: files[0].find(b"\n") + 1]
    lengths = [data.count(b"\n") - 1 for data in files]
    if len(paths) == 1 or not all(data.startswith(header) for data in files):
        return None
    try:
        frame = _parsed(header + b"".join(data[len(header) :] for data in files), texts)
    except ValueError:
        return None
    return Part(paths, lengths, _compact(frame)) if len(frame) == sum(lengths) else None


def _content(path: Path) -> bytes:
    with open_log(path) as log:
        return log.read()


def _singly(paths: Iterable[Path], texts: Collection[str], errors: list[UserError]) -> Iterator[Part]:
    for path in paths:
        try:
            frame = rows(path, texts)
        except UserError as error:
            errors.append(error)
        else:
            yield Part([path], [len(frame)], frame)


def _parsed(data: bytes, texts: Collection[str]) -> pd.DataFrame:
    import pandas as pd

    statuses = pd.CategoricalDtype(list(STATUS))  # the same for all runs, so cheap to join
    types = {name: _TYPES.get(name, statuses) for name in COLUMNS[:-1] if name not in TEXTS or name in texts}
    how: dict[str, Any] = {"keep_default_na": False, "low_memory": False, **_exact()}
    return pd.read_csv(io.BytesIO(data), usecols=list(types), dtype=types, **how)


def _compact(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({name: "category" for name in ("config", "reason") if name in frame})


@cache
def _exact() -> dict[str, Any]:
    """Return the options with which pandas reads floats to the last digit, its default since 3.1."""
    import pandas as pd

    new = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    return {} if new else {"float_precision": "round_trip"}
