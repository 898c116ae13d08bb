"""A run's best candidates, measured again in pairs with the default: `remeasured.csv`, one pair per line."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Self

from ..errors import UserError
from ..files.writing import disk_errors
from .folders import REMEASURED
from .sealed import sealed, unsealed

ROUNDS = 6
"""Pairs of each candidate: an even number, because one half chooses candidates and the other half judges the choice."""
COLUMNS = ("round", "evaluation", "default", "value", "config", "check")
_HEADER = f"{','.join(COLUMNS)}\n"


@dataclass(frozen=True, slots=True)
class Pair:
    """The costs of the default and of a candidate, measured one after the other.

    Attributes:
      round: from 1; in each round all candidates are measured once.
      evaluation: the row of the run in which the candidate had its lowest cost.
      default, value: in the problem's unit; the value is inf if the candidate failed.
      config: the candidate as packed text.
    """

    round: int
    evaluation: int
    default: float
    value: float
    config: str

    @property
    def speedup(self) -> float:
        """The default's cost / the candidate's: 0 if it failed, inf if it costs nothing."""
        if self.default == self.value:
            return 1.0
        return self.default / self.value if self.value else math.inf

    def line(self) -> str:
        """Return the pair as a line of CSV that ends with a checksum of the text before it."""
        return sealed(f"{self.round},{self.evaluation},{self.default!r},{self.value!r},{self.config},")

    @classmethod
    def parse(cls, line: str) -> Self:
        """Return the pair that a line holds.

        Raises:
          ValueError: the line is not one that `line` wrote.
        """
        number, evaluation, default, value, config, _ = unsealed(line).split(",")
        return cls(int(number), int(evaluation), float(default), float(value), config)


@dataclass(frozen=True)
class Finalist:
    """A candidate that was measured again.

    Attributes:
      evaluation: the row of the run in which it had its lowest cost.
      config: as packed text.
      speedups: by round.
    """

    evaluation: int
    config: str
    speedups: tuple[float, ...]

    @property
    def speedup(self) -> float:
        """The median over all rounds."""
        return median(self.speedups)


class PairLog:
    """The writer of one run's `remeasured.csv`.

    Args:
      folder: of the run, whose lock is held.

    Attributes:
      known: round and evaluation of each pair that is stored.

    Raises:
      UserError: the file cannot be read or written, or is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / REMEASURED
        with disk_errors(folder):
            data = self._file.read_bytes() if self._file.exists() else b""
            self.known = {(pair.round, pair.evaluation) for pair in _pairs(self._file, data)}
            with self._file.open("ab") as file:
                file.truncate(data.rfind(b"\n") + 1)  # a crash may have cut the last line
            if b"\n" not in data:
                self._write(_HEADER)

    def append(self, pair: Pair) -> None:
        """Write a pair; once this returns, no crash of the process loses it."""
        self.known.add((pair.round, pair.evaluation))
        self._write(pair.line())

    def _write(self, text: str) -> None:
        with disk_errors(self._file.parent), self._file.open("a", encoding="utf-8", newline="") as file:
            file.write(text)

    def sync(self) -> None:
        """Return when all pairs are on disk."""
        with disk_errors(self._file.parent), self._file.open("a") as file:
            os.fsync(file.fileno())


def finalists(folder: Path) -> list[Finalist]:
    """Return the candidates of a run that were measured again in all rounds; none if it was not measured again.

    Raises:
      UserError: the file is damaged.
    """
    return [each for each in _finalists(folder) if len(each.speedups) == ROUNDS]


def is_remeasured(folder: Path) -> bool:
    """Return whether all that was to be measured again was: each round measures every candidate before the next begins.

    Raises:
      UserError: the file is damaged.
    """
    return {len(each.speedups) for each in _finalists(folder)} == {ROUNDS}


def final_speedup(finalists: Iterable[Finalist], evaluation: int) -> float | None:
    """Return the speedup, measured again, of the candidate in a row of the run; None if it was not."""
    return next((each.speedup for each in finalists if each.evaluation == evaluation), None)


def _finalists(folder: Path) -> list[Finalist]:
    file = folder / REMEASURED
    try:
        data = file.read_bytes() if file.exists() else b""
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    speedups: dict[tuple[int, str], list[float]] = defaultdict(list)
    for pair in _pairs(file, data):
        speedups[pair.evaluation, pair.config].append(pair.speedup)
    return [Finalist(evaluation, config, tuple(each)) for (evaluation, config), each in speedups.items()]


def _pairs(file: Path, data: bytes) -> list[Pair]:
    """Return the pairs on the complete lines of a file, in order."""
    lines = data[: data.rfind(b"\n") + 1].decode(errors="replace").split("\n")[:-1]
    pairs = []
    for number, line in enumerate(lines, start=1):
        try:
            if number > 1:
                pairs.append(Pair.parse(f"{line}\n"))
            elif f"{line}\n" != _HEADER:
                raise ValueError("this is not its header")
        except ValueError as error:
            remedy = "restore the file, or delete it and run the study again, which makes it anew"
            raise UserError(f"{file}, line {number} is damaged ({error}); nothing was changed: {remedy}") from None
    return pairs
