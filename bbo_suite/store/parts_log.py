"""A run's log `parts.csv`: the parts that each evaluation told, so that a replay tells the same.

A line holds how an evaluation differs from the one before it. Parts have numbers, in the order in which they first
appear. `KEY*COUNT=COST` is a part that appears for the first time, `+NUMBER` one that is there again, with `*COUNT` or
`=COST` if these have changed, `-NUMBER` one that is gone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from ..errors import UserError
from ..files.log import CheckedLog, checksummed
from ..parts.parts import Parts
from .folders import PARTS, ROWS

_HEADER = "evaluation,parts,check\n"
_TOKEN = re.compile(r"([+-]\d+|[0-9a-f]{16})(?:\*([^=*]+))?(?:=([^=*]+))?")

Told = dict[int, tuple[float, float]]
"""Count and cost of each part of a candidate, by key."""


class PartsLog:
    """Replays the parts of a run's stored evaluations, then appends those of new ones.

    Args:
      run: the run's folder.
      exact: True if the cost of a part may not change, because nothing is noisy.
    """

    def __init__(self, run: Path, exact: bool = False) -> None:
        self._log, self._exact = CheckedLog[str](run / PARTS, _HEADER), exact
        self._last: Told = {}
        self._known: Told = {}
        self._keys: list[int] = []
        self._numbers: dict[int, int] = {}
        self._stored = (self._apply(text) for text in self._log)

    def append(self, first: int, parts: Parts) -> None:
        """Write the parts of the candidates from evaluation `first` on; their rows must be written after them.

        Raises:
          ValueError: a part costs something else than before, though nothing is noisy.
        """
        # lines that were not replayed are removed: a crash has kept their rows from being written
        self._log.append([self._line(first + i, told) for i, told in enumerate(by_candidate(parts))])

    def sync(self) -> None:
        """Wait until everything is on disk."""
        self._log.sync()

    def _line(self, evaluation: int, told: Told) -> str:
        gone = [f"-{self._numbers[key]}" for key in self._last if key not in told]
        there = [self._token(evaluation, key, part) for key, part in told.items() if self._last.get(key) != part]
        self._last = told
        return checksummed(f"{evaluation},{' '.join(gone + there)},")

    def _token(self, evaluation: int, key: int, part: tuple[float, float]) -> str:
        count, cost = part
        if key in self._known:
            before = self._known[key]
            if self._exact and not math.isclose(cost, before[1], rel_tol=1e-9):
                raise ValueError(
                    f"the part {key:016x} costs {cost!r} in evaluation {evaluation}, and cost {before[1]!r} before;"
                    " its key must tell these parts apart, or the problem must say that it is noisy"
                )
            changed = f"*{count!r}" * (count != before[0]) + f"={cost!r}" * (cost != before[1])
            token = f"+{self._numbers[key]}{changed}"
        else:
            self._number(key)
            token = f"{key:016x}*{count!r}={cost!r}"
        self._known[key] = part
        return token

    def _number(self, key: int) -> None:
        self._numbers[key] = len(self._keys)
        self._keys.append(key)

    def replay(self, first: int, count: int) -> Parts:
        """Return the parts of `count` candidates, whose rows are stored from evaluation `first` on.

        Raises:
          UserError: the file is damaged, or ends before them.
        """
        told = []
        for evaluation in range(first, first + count):
            if next(self._stored, None) != evaluation:
                remedy = (
                    f"delete line {evaluation + 1} of {ROWS} and all after it: these evaluations are then made again"
                )
                raise UserError(f"{self._log.file} lacks evaluation {evaluation}; nothing was changed: {remedy}")
            told.append(self._last)
        return _parts(told)

    def _apply(self, text: str) -> int:
        """Bring `_last` to the evaluation of a line, and return the evaluation."""
        try:
            evaluation, tokens, _ = text.split(",")
            self._last = dict(self._last)  # the dictionary before was given out
            for token in tokens.split():
                self._take(token)
            return int(evaluation)
        except (ValueError, LookupError) as error:
            raise self._log.damaged(str(error)) from None

    def _take(self, token: str) -> None:
        if not (fields := _TOKEN.fullmatch(token)):
            raise ValueError(f"{token!r} is not a part")
        name, count, cost = fields.groups()
        key = self._keys[int(name[1:])] if name[0] in "+-" else int(name, 16)
        if name[0] == "-":
            del self._last[key]
            return
        if key not in self._numbers:
            self._number(key)
        before = self._known.get(key, (1.0, np.inf))
        self._known[key] = self._last[key] = (float(count or before[0]), float(cost or before[1]))


def by_candidate(parts: Parts) -> Iterator[Told]:
    """Yield the parts of each candidate."""
    pairs = list(zip(parts.keys.tolist(), zip(parts.counts.tolist(), parts.costs.tolist(), strict=True), strict=True))
    yield from (dict(pairs[start:end]) for start, end in pairwise(parts.starts.tolist()))


def _parts(told: list[Told]) -> Parts:
    """Return the parts of candidates in the order of `Parts.merged`."""
    ordered = [(key, *parts[key]) for parts in told for key in sorted(parts)]
    keys, counts, costs = zip(*ordered, strict=True) if ordered else ((), (), ())
    starts = np.cumsum([0, *map(len, told)])
    return Parts(starts, np.array(keys, np.uint64), np.array(counts, np.float64), np.array(costs, np.float64))
