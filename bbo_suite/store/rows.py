"""A run's log `rows.csv`: one evaluation per line, each with a checksum. The columns and the exact reader.

`frames` reads the same columns fast, without the checksums. `tail` reads only the new lines of a growing log.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from ..core.problem import Status
from ..errors import UserError
from .folders import ROWS
from .sealed import sealed, unsealed

COLUMNS = (
    *("evaluation", "digest", "value", "status", "strategy_seconds", "evaluation_seconds"),
    *("config", "reason", "check"),
)
HEADER = f"{','.join(COLUMNS)}\n"
STATUS = {status.word: status for status in Status}
_CONFIG_AND_REASON = re.compile(r'("(?:[^"]|"")*"|[^,"]*),(.*),')


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
        return sealed(f"{start},{_quote(self.config)},{_quote(self.reason)},")

    @classmethod
    def parse(cls, line: str) -> Self:
        """Return the row that a line holds.

        Raises:
          ValueError: the line is not one that `line` wrote.
        """
        evaluation, digest, value, status, strategy_seconds, evaluation_seconds, rest = unsealed(line).split(",", 6)
        fields = _CONFIG_AND_REASON.fullmatch(rest)
        if not fields or status not in STATUS:
            raise ValueError("its fields are not those of a row")
        times = float(strategy_seconds), float(evaluation_seconds)
        texts = map(_unquote, fields.groups())
        return cls(int(evaluation), digest, float(value), STATUS[status], *times, *texts)


def _quote(text: str) -> str:
    """Return text as a CSV field on one line; packed configurations and most reasons need no quotes."""
    printable = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    flat = " ".join(printable.split())
    return '"' + flat.replace('"', '""') + '"' if "," in flat or '"' in flat else flat


def _unquote(field: str) -> str:
    return field[1:-1].replace('""', '"') if field.startswith('"') else field


def open_log(path: Path) -> BinaryIO:
    """Open the log in a run's folder; an empty one if it is missing.

    Raises:
      UserError: it cannot be read.
    """
    try:
        return (path / ROWS).open("rb")
    except FileNotFoundError:
        return io.BytesIO()
    except OSError as error:
        raise UserError(f"cannot read {path / ROWS}: {error.strerror}") from None


class RowReader:
    """Iterates over the complete rows of a run's folder and holds one of them at a time.

    Attributes:
      evaluations: the number of rows so far.
      length: of the part of the file that holds them, in bytes.
    """

    def __init__(self, path: Path) -> None:
        self._file = path / ROWS
        self.evaluations = self.length = 0

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows.

        Raises:
          UserError: it cannot be read, or holds a byte that this suite did not write; the file is left as it is.
        """
        with open_log(self._file.parent) as lines:
            yield from self._rows(lines)

    def _rows(self, lines: Iterable[bytes]) -> Iterator[Row]:
        for line in lines:
            if not line.endswith(b"\n"):
                self._check_torn(line.rstrip(b"\0"))  # a power loss may leave zeros where data was not on disk yet
            elif self.length:
                row = self._row(line.decode(errors="replace"))
                self.evaluations += 1
                self.length += len(line)
                yield row
            elif line == HEADER.encode():
                self.length = len(line)
            else:
                raise damaged(self._file, 1, "this is not its header")

    def _row(self, line: str) -> Row:
        try:
            row = Row.parse(line)
            if row.evaluation != self.evaluations + 1:
                raise ValueError(f"it is evaluation {row.evaluation}, not {self.evaluations + 1}")
        except (ValueError, KeyError) as error:
            raise damaged(self._file, self.evaluations + 2, str(error)) from None
        return row

    def _check_torn(self, line: bytes) -> None:
        start = f"{self.evaluations + 1},".encode()
        if not self.length and not HEADER.encode().startswith(line):
            raise damaged(self._file, 1, "this is not its header")
        if self.length and not (line.startswith(start) or start.startswith(line)):
            raise damaged(self._file, self.evaluations + 2, "the unfinished line is not the next evaluation")


def read_rows(path: Path) -> list[Row]:
    """Return the complete rows of a run's folder.

    Raises:
      UserError: the file holds a byte that this suite did not write; the file is left as it is.
    """
    return list(RowReader(path))


def damaged(file: Path, line: int, why: str) -> UserError:
    """Return the error for a log with a line that this suite did not write."""
    remedy = f"restore the file, or delete line {line} and all after it: these evaluations are then made again"
    return UserError(f"{file}, line {line} is damaged ({why}); nothing was changed: {remedy}")
