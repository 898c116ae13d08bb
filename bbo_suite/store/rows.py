"""A run's log `rows.csv`: one evaluation per line, each with a checksum. The columns and the exact reader.

`frames` reads the same columns fast, without the checksums. `tail` reads only the new lines of a growing log.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ..core.problem import Status
from ..errors import UserError
from .folders import ROWS

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
        text = f"{start},{_quote(self.config)},{_quote(self.reason)},"
        return f"{text}{zlib.crc32(text.encode()):08x}\n"

    @classmethod
    def parse(cls, line: str) -> Self:
        """Return the row that a line holds.

        Raises:
          ValueError: the line is not one that `line` wrote.
        """
        text, check = line[:-9], line[-9:-1]
        if not line.endswith("\n") or f"{zlib.crc32(text.encode()):08x}" != check:
            raise ValueError("its checksum does not match")
        evaluation, digest, value, status, strategy_seconds, evaluation_seconds, rest = text.split(",", 6)
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


def read_rows(path: Path) -> tuple[list[Row], int]:
    """Return the complete rows of a run's folder and the length in bytes of the part of the file that holds them.

    Raises:
      UserError: the file holds a byte that this suite did not write; the file is left as it is.
    """
    file = path / ROWS
    data = file.read_bytes() if file.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    rows: list[Row] = []
    lines = [f"{line}\n" for line in whole.decode(errors="replace").split("\n")[:-1]]
    if (lines and lines[0] != HEADER) or (not lines and not HEADER.encode().startswith(data)):
        raise damaged(file, 1, "this is not its header")
    for number, line in enumerate(lines[1:], start=2):
        try:
            rows.append(Row.parse(line))
            if rows[-1].evaluation != number - 1:
                raise ValueError(f"it is evaluation {rows[-1].evaluation}, not {number - 1}")
        except (ValueError, KeyError) as error:
            raise damaged(file, number, str(error)) from None
    torn, start = data[len(whole) :], f"{len(rows) + 1},".encode()
    if whole and not (torn.startswith(start) or start.startswith(torn)):
        raise damaged(file, len(rows) + 2, "the unfinished line is not the next evaluation")
    return rows, len(whole)


def damaged(file: Path, line: int, why: str) -> UserError:
    """Return the error for a log with a line that this suite did not write."""
    remedy = "restore the file, delete its folder to run it again, or choose another --study"
    return UserError(f"{file}, line {line} is damaged ({why}); nothing was changed: {remedy}")
