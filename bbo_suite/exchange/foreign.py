"""Checks of foreign runs before they enter a study: facts of the right types, and every evaluation filled in."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Any

from ..core.level import LEVEL, Level
from ..core.problem import Status
from ..store.rows import Row
from .formats import ForeignRun

HELD = "not told by the file that was imported: no better than the best so far"
"""The reason of an evaluation that a trajectory leaves out; its value is the best so far."""
LARGEST = 10_000_000
"""Maximum number of evaluations of a run."""
_TEXTS = ("problem", "fingerprint", "strategy", "unit")
_COUNTS = ("seed", "budget", "batch")


def checked_head(head: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the facts of a run if each has its type.

    Raises:
      ValueError: one has not; the message names it.
    """
    good = {key: isinstance(head[key], str) and head[key] != "" for key in _TEXTS}
    good |= {key: type(head[key]) is int and head[key] >= (key != "seed") for key in _COUNTS if key in head}
    good |= {"options": isinstance(head["options"], dict), LEVEL: head[LEVEL] in {level.word for level in Level}}
    good |= {"default": _is_number(head["default"]) and 0 <= head["default"] < math.inf}
    good |= {"optimum": head["optimum"] is None or _is_number(head["optimum"])}
    for key, fits in good.items():
        if not fits:
            raise ValueError(f"{place} has {str(head[key])[:60]!r} as its {key}")
    return head


def _is_number(fact: Any) -> bool:  # noqa: ANN401 - whatever stands there
    return isinstance(fact, (int, float)) and not isinstance(fact, bool)


def contiguous(run: ForeignRun) -> Iterator[Row]:
    """Yield every evaluation of a run; those missing in its file repeat the best so far, with a reason that says so.

    Raises:
      ValueError: a row could not have been written by this suite.
    """
    last, best = 0, Row(0, "", math.inf, Status.RUNTIME_ERROR, 0.0, 0.0)
    for row in run.rows:
        if why := _complaint(row, last):
            place = f"at {run.where()}" if run.where else f"of the run at {run.place}"
            raise ValueError(f"evaluation {row.evaluation} {place} {why}")
        if row.evaluation > last + 1:
            yield from _held(best, last + 1, row.evaluation)
        yield row
        last, best = row.evaluation, min(best, row, key=lambda known: known.value)
    if run.evaluations > LARGEST:
        raise ValueError(f"{run.place} has {run.evaluations} evaluations; at most {LARGEST} are read")
    yield from _held(best, last + 1, run.evaluations + 1)


def _held(best: Row, start: int, stop: int) -> Iterator[Row]:
    same = dataclasses.replace(best, strategy_seconds=0.0, evaluation_seconds=0.0, config="", reason=HELD)
    return (dataclasses.replace(same, evaluation=number) for number in range(start, stop))


def _complaint(row: Row, last: int) -> str:
    """Return what is wrong with a row that follows evaluation `last`; empty if it is valid."""
    if not last < row.evaluation <= LARGEST:
        return f"follows {last}; numbers must ascend, from 1 to at most {LARGEST}"
    if not row.value >= 0:
        return f"costs {row.value}; a cost must not be negative, and a failure costs inf"
    if (row.status is Status.OK) != math.isfinite(row.value):
        return f"costs {row.value} but is {row.status.word}; ok means a finite cost, and a failure costs inf"
    if not all(math.isfinite(t) and t >= 0 for t in (row.strategy_seconds, row.evaluation_seconds)):
        return "took seconds that are negative or not finite"
    if not re.fullmatch(r"([0-9a-f]{16})?", row.digest) or not re.fullmatch(r"[0-9A-Za-z-]*", row.config):
        return "has a malformed digest or candidate"
    return ""
