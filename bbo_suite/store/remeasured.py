"""A run's best candidates, measured again in pairs with the default: `remeasured.csv`, one pair per line."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Self

from ..files.log import CheckedLog, checksummed
from .folders import REMEASURED
from .identity import PAIRS, read_end

ROUNDS = 6
"""Pairs of each candidate: an even number, because one half chooses candidates and the other half judges the choice."""
COLUMNS = ("round", "evaluation", "default", "value", "config", "check")


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
        return checksummed(f"{self.round},{self.evaluation},{self.default!r},{self.value!r},{self.config},")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the pair that a line holds, which is given without its checksum.

        Raises:
          ValueError: it holds none.
        """
        number, evaluation, default, value, config, _ = text.split(",")
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


class PairLog(CheckedLog[Pair]):
    """The log of one run's `remeasured.csv`, in which each pair occurs once."""

    def __init__(self, folder: Path) -> None:
        remedy = "restore the file, or delete it and run the study again, which makes it anew"
        super().__init__(folder / REMEASURED, f"{','.join(COLUMNS)}\n", self._checked, remedy=remedy)
        self._seen: set[tuple[int, int]] = set()

    def __iter__(self) -> Iterator[Pair]:
        """Return the pairs from the beginning."""
        self._seen.clear()
        return super().__iter__()

    def _checked(self, line: str) -> Pair:
        pair = Pair.parse(line)
        if not (1 <= pair.round <= ROUNDS and pair.evaluation >= 1 and 0 < pair.default < math.inf and pair.value >= 0):
            raise ValueError("no measurement has these numbers")
        if (pair.round, pair.evaluation) in self._seen:
            raise ValueError(f"round {pair.round} of evaluation {pair.evaluation} is there twice")
        self._seen.add((pair.round, pair.evaluation))
        return pair


def finalists(folder: Path) -> list[Finalist]:
    """Return the candidates of a run that were measured again in all rounds; none if it was not measured again.

    Raises:
      UserError: the file is damaged.
    """
    return [each for each in _finalists(folder) if len(each.speedups) == ROUNDS]


def is_remeasured(folder: Path) -> bool:
    """Return whether all that was to be measured again was.

    `end.json` says how many pairs these are; older ones do not, but then each candidate has all of its rounds.

    Raises:
      UserError: a file is damaged.
    """
    if PAIRS in (end := read_end(folder) or {}):
        return end[PAIRS] == sum(1 for _ in PairLog(folder))
    return {len(each.speedups) for each in _finalists(folder)} == {ROUNDS}


def final_speedup(finalists: Iterable[Finalist], evaluation: int) -> float | None:
    """Return the speedup, measured again, of the candidate in a row of the run; None if it was not."""
    return next((each.speedup for each in finalists if each.evaluation == evaluation), None)


def _finalists(folder: Path) -> list[Finalist]:
    speedups: dict[tuple[int, str], list[float]] = defaultdict(list)
    for pair in PairLog(folder):
        speedups[pair.evaluation, pair.config].append(pair.speedup)
    return [Finalist(evaluation, config, tuple(each)) for (evaluation, config), each in speedups.items()]
