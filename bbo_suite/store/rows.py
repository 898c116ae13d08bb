"""A run's log `rows.csv`: one evaluation per line, each with a checksum. Its columns, its writer's lines, its parser.

`RowLog` checks every line and gives rows. `frame`, `pieces` and `joined_runs` give many rows fast as pandas frames. All
verify the checksums, because a changed cost would be believed. `tail` looks at the new lines of a growing log.
"""

from __future__ import annotations

import ctypes
import io
import re
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..core.problem import Status
from ..errors import UserError
from ..files.log import CheckedLog, checksummed
from .folders import ROWS

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("evaluation", "digest", "value", "status", "strategy_seconds", "evaluation_seconds"),
    *("config", "reason", "check"),
)
HEADER = f"{','.join(COLUMNS)}\n"
STATUS = {status.word: status for status in Status}
TEXTS = ("digest", "config", "reason")
"""The columns of text. They take most of the memory of a large frame, and few readers need them."""
PIECE = 1 << 20
"""Bytes that are parsed at a time: of one log, so that a long one needs little memory, or of several short ones."""
_SECONDS = ("strategy_seconds", "evaluation_seconds")
_TYPES: dict[str, Any] = {
    **dict.fromkeys(TEXTS, "str"),
    **{"evaluation": "int32", "value": "float64"},
    **dict.fromkeys(_SECONDS, "float32"),
}
_M_MMAP_THRESHOLD = -3
# Frames are for long logs: of a short one, pandas takes a hundred times as long as this.
_QUOTED = re.compile(",".join([r'([^",]*+)'] * 6 + [r'("(?:[^"]|"")*+"|[^",]*+)'] * 2 + ["()"]))
LINES = 5000
"""Lines of which rows are made at a time: enough for speed, few enough for little memory."""


@dataclass(frozen=True, slots=True)
class Row:
    """One evaluation.

    Attributes:
      evaluation: its number in the run, from 1.
      digest: of the candidate.
      value: in the problem's unit; inf if it failed.
      status: the outcome.
      strategy_seconds: its share of the time that the strategy took for the batch.
      evaluation_seconds: what the evaluation took.
      config: the candidate as packed text, for improvements and where every candidate is kept; else empty.
      reason: why it failed, or a remark; else empty.
    """

    evaluation: int
    digest: str
    value: float
    status: Status
    strategy_seconds: float
    evaluation_seconds: float
    config: str = ""
    reason: str = ""

    def line(self) -> str:
        """Return the row as a line of CSV that ends with a checksum of the text before it."""
        times = f"{self.strategy_seconds:.6g},{self.evaluation_seconds:.6g}"
        start = f"{self.evaluation},{self.digest},{self.value!r},{self.status.word},{times}"
        return checksummed(f"{start},{_quote(self.config)},{_quote(self.reason)},")


def _quote(text: str) -> str:
    """Return text as a CSV field on one line; packed configurations and most reasons need no quotes."""
    printable = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    flat = " ".join(printable.split())
    return '"' + flat.replace('"', '""') + '"' if "," in flat or '"' in flat else flat


DEPARTS_BECAUSE = (
    "the strategy, its libraries or the processor changed, "
    "or the strategy draws random numbers from elsewhere than its rng"
)
"""Why a strategy departs from its stored rows, if nothing more is known."""


def departure(known: Sequence[Row], proposed: Sequence[str]) -> str:
    """Return where a strategy that is replayed departs from the stored rows of its run, in words; empty if nowhere.

    Args:
      known: the rows that are stored for its next batch.
      proposed: the digests of that batch.
    """
    if known and not proposed:
        return f"evaluation {known[0].evaluation} is stored, but the strategy proposes no more candidates"
    pairs = zip(known, proposed, strict=False)
    other = next((row.evaluation for row, digest in pairs if row.digest != digest), None)
    return f"the strategy now proposes another candidate for evaluation {other}" if other else ""


class RowLog(CheckedLog[str]):
    """The log in a run's folder: the text of its lines, or its rows."""

    def __init__(self, run: Path) -> None:
        super().__init__(run / ROWS, HEADER)

    def rows(self) -> Iterator[Row]:
        """Yield all complete rows; few of them are held at a time.

        Raises:
          UserError: the file cannot be read, or holds a byte that this suite did not write; it is left as it is.
        """
        texts = self._in_order()
        while some := list(islice(texts, LINES)):
            try:
                yield from parse_rows(some)
            except ValueError:
                raise self._damaged_in(some) from None

    def _in_order(self) -> Iterator[str]:
        """Yield the text of the lines, whose evaluations are numbered from 1."""
        for text in self:
            if not text.startswith(f"{self.number - 1},"):
                raise self.damaged(f"it is evaluation {text.partition(',')[0]}, not {self.number - 1}")
            yield text

    def _damaged_in(self, texts: Sequence[str]) -> UserError:
        """Return the error for the last lines that were read, of which one is no row though its checksum matches."""
        self.number -= len(texts)
        for text in texts:
            self.number += 1
            try:
                parse_rows([text])
            except ValueError:
                break
        return self.damaged("its fields are not those of a row")

    def check_unfinished(self, line: bytes) -> None:
        """Check that the last line begins like the next evaluation."""
        super().check_unfinished(line)
        start = f"{self.number - 1},".encode()
        if self.number > 1 and not (line.startswith(start) or start.startswith(line)):
            raise self.damaged("the unfinished line is not the next evaluation")


def read_rows(run: Path) -> list[Row]:
    """Return the complete rows of a run's folder.

    Raises:
      UserError: the file holds a byte that this suite did not write; the file is left as it is.
    """
    return list(RowLog(run).rows())


def parse_rows(texts: Sequence[str]) -> list[Row]:
    """Return the rows that lines hold, which are given without their checksums.

    Raises:
      ValueError: they hold none.
    """
    return list(map(_row, texts))


def _row(text: str) -> Row:
    number, digest, value, status, strategy, evaluation, config, reason, end = _fields(text)
    if end or status not in STATUS:
        raise ValueError("this is no row")
    times = float(strategy), float(evaluation)
    return Row(int(number), digest, float(value), STATUS[status], *times, config, reason)


def _fields(text: str) -> list[str]:
    """Return the fields of a line; none if a quote stands where `_quote` writes none."""
    if '"' not in text:
        return text.split(",")
    found = _QUOTED.fullmatch(text)
    return [field[1:-1].replace('""', '"') if field[:1] == '"' else field for field in found.groups()] if found else []


def _checked(header: bytes, lines: bytes) -> bytes:
    """Return a header and whole lines as one, after a check of each line.

    Raises:
      ValueError: a checksum does not match.
    """
    crc, each = zlib.crc32, filter(None, lines.split(b"\n") if header == HEADER.encode() else ())
    if not all(b"%08x" % crc(line[:-8]) == line[-8:] for line in each):
        raise ValueError("a checksum does not match")
    return header + lines


def _parsed(data: bytes, texts: Collection[str]) -> pd.DataFrame:
    """Return lines, which follow the header, as a frame.

    Args:
      texts: which of the columns of text to read.

    Raises:
      ValueError: they are not lines of a log.
    """
    import pandas as pd

    statuses = pd.CategoricalDtype(list(STATUS))  # the same for all runs, so cheap to join
    usual = {name: _TYPES.get(name, statuses) for name in COLUMNS[:-1] if name not in TEXTS or name in texts}
    how: dict[str, Any] = {"keep_default_na": False, "low_memory": False, **_exact()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of an unknown status, which is refused here
        parsed = pd.read_csv(io.BytesIO(data), usecols=list(usual), dtype=usual, **how)
    if parsed["status"].hasnans:
        raise ValueError("a status is unknown")
    return parsed


@cache
def _exact() -> dict[str, Any]:
    """Return the options with which pandas reads floats to the last digit, its default since 3.1."""
    import pandas as pd

    new = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    return {} if new else {"float_precision": "round_trip"}


@dataclass(frozen=True)
class JoinedRuns:
    """The rows of some runs, one run after the other: `lengths[i]` rows of `paths[i]`."""

    paths: Sequence[Path]
    lengths: Sequence[int]
    frame: pd.DataFrame


def open_log(run: Path) -> BinaryIO:
    """Open the log in a run's folder; an empty one if it is missing.

    Raises:
      UserError: it cannot be read.
    """
    try:
        return (run / ROWS).open("rb")
    except FileNotFoundError:
        return io.BytesIO()
    except OSError as error:
        raise UserError(f"cannot read {run / ROWS}: {error.strerror}") from None


def frame(
    run: Path,
    texts: Collection[str] = TEXTS,
    kept: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows,
) -> pd.DataFrame:
    """Return the complete rows of one run's folder, also while it is written; columns as in `rows.csv`.

    Args:
      texts: which of the columns of text to read.
      kept: as for `joined_runs`.

    Raises:
      UserError: the file is damaged.
    """
    return together([kept(piece) for piece in pieces(run, texts)])


def pieces(path: Path, texts: Collection[str] = TEXTS) -> Iterator[pd.DataFrame]:
    """Yield the complete rows of one run's folder in one or more frames, so that a long log needs little memory.

    Raises:
      UserError: the file is damaged.
    """
    if is_long(path):
        _return_freed_arrays()
    with open_log(path) as log:
        cut = log.readline()
        header = cut if cut.endswith(b"\n") else HEADER.encode()
        cut, first = b"", True
        while (data := log.read(PIECE)) or first:
            whole, _, cut = (cut + data).rpartition(b"\n")
            try:
                yield _parsed(_checked(header, whole), texts)
            except ValueError as error:
                remedy = "restore it, or run the study again, which names the line"
                raise UserError(f"{path / ROWS} is damaged ({error}); {remedy}") from None
            first = False


@cache
def _return_freed_arrays() -> None:
    """Let this process return the memory of large arrays when they are freed; the C library keeps more and more."""
    with suppress(AttributeError, OSError):  # it is not that of GNU
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 1 << 16)


def joined_runs(
    paths: Iterable[Path],
    texts: Collection[str],
    errors: list[UserError],
    kept: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows,
) -> Iterator[JoinedRuns]:
    """Yield the complete rows of runs, given by their folders, in their order.

    Short logs are parsed together, because each call of the parser costs as much as thousands of rows.

    Args:
      errors: takes the error of each damaged run, which is left out.
      kept: returns what is kept of some rows: their texts need more memory than all else.
    """
    for group in _groups(paths):
        if joined := _together(group, texts, kept):
            yield joined
        else:
            yield from _singly(group, texts, errors, kept)


def is_long(run: Path) -> bool:
    """Return whether the log in a run's folder is longer than one piece."""
    return _length(run) > PIECE


def _length(run: Path) -> int:
    return (run / ROWS).stat().st_size if (run / ROWS).exists() else 0


def _groups(paths: Iterable[Path]) -> Iterator[list[Path]]:
    """Yield the runs in groups whose logs have the size of a piece together, or one whose log is longer."""
    group: list[Path] = []
    total = 0
    for path in paths:
        size = _length(path)
        if group and total + size > PIECE:
            yield group
            group, total = [], 0
        group.append(path)
        total += size
    if group:
        yield group


def _together(
    paths: Sequence[Path], texts: Collection[str], kept: Callable[[pd.DataFrame], pd.DataFrame]
) -> JoinedRuns | None:
    """Return the rows of several runs; None if one of them has to be read alone, to say that it is damaged."""
    if len(paths) == 1:
        return None
    try:
        files = [_content(path) for path in paths]
    except UserError:
        return None
    files = [data[: data.rfind(b"\n") + 1] or HEADER.encode() for data in files]
    header = files[0][: files[0].find(b"\n") + 1]
    lengths = [data.count(b"\n") - 1 for data in files]
    if not all(data.startswith(header) for data in files):
        return None
    try:
        joined = kept(_parsed(_checked(header, b"".join(data[len(header) :] for data in files)), texts))
    except ValueError:
        return None
    return JoinedRuns(paths, lengths, _compact(joined)) if len(joined) == sum(lengths) else None


def _content(path: Path) -> bytes:
    with open_log(path) as log:
        return log.read()


def _singly(
    paths: Iterable[Path],
    texts: Collection[str],
    errors: list[UserError],
    kept: Callable[[pd.DataFrame], pd.DataFrame],
) -> Iterator[JoinedRuns]:
    for path in paths:
        try:
            rows = frame(path, texts, kept)
        except UserError as error:
            errors.append(error)
        else:
            yield JoinedRuns([path], [len(rows)], rows)


def together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of some frames as one, in which each text that occurs often stands once."""
    import pandas as pd

    return _compact(pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0])


def _compact(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.astype({name: "category" for name in ("config", "reason") if name in rows})
