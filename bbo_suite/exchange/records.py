"""Runs as a table with one row per evaluation, shared by CSV and Parquet."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from ..core.level import LEVEL, OLDER_FLAGS, Level
from ..files.reading import parse_json
from ..store.rows import STATUS, Row
from ..store.stored_run import StoredRun
from .formats import ForeignRun
from .stored_study import HEAD, facts

if TYPE_CHECKING:
    import pandas as pd

ROW = ("evaluation", "digest", "value", "status", "strategy_seconds", "evaluation_seconds", "config", "reason")
COLUMNS = (*HEAD, *ROW)
NEEDED = ("evaluation", "value")
"""The columns without which a table holds no runs."""

Record = tuple[str, dict[str, Any]]
"""The place of an evaluation in its file, and its cells by column."""


def table(run: StoredRun) -> pd.DataFrame:
    """Return a run's rows, each with the facts of the run; `options` is JSON."""
    frame = run.frame()
    for key, value in (facts(run) | {"options": json.dumps(run.head["options"])}).items():
        frame[key] = math.nan if value is None else value
    return frame[list(COLUMNS)]


def missing(columns: Collection[str]) -> list[str]:
    """Return the columns without which a table holds no runs."""
    return [column for column in NEEDED if column not in columns]


def runs(records: Iterator[Record]) -> Iterator[ForeignRun]:
    """Yield the runs of a table, in which the rows of a run are consecutive.

    Raises:
      ValueError: a cell has the wrong type; the message names its place.
    """
    for _, group in groupby(records, key=lambda record: [str(record[1].get(key)) for key in HEAD]):
        yield _run(group)


def _run(group: Iterator[Record]) -> ForeignRun:
    first = next(group)
    rows = _Rows(chain([first], group))
    return ForeignRun(_head(*first), rows, first[0], where=rows.where)


class _Rows:
    """The rows of records, and the place of the last one."""

    def __init__(self, group: Iterator[Record]) -> None:
        self._records, self._place = group, ""

    def __iter__(self) -> Iterator[Row]:
        for place, record in self._records:
            self._place = place
            yield _row(place, record)

    def where(self) -> str:
        return self._place


def _head(place: str, record: dict[str, Any]) -> dict[str, Any]:
    known = (*HEAD, *OLDER_FLAGS)
    head = {key: _fact(place, key, record[key]) for key in known if record.get(key) not in (None, "")}
    if {*OLDER_FLAGS} & {*head}:
        head[LEVEL] = Level.of(head).word
    return {key: value for key, value in head.items() if value is not None}


def _fact(place: str, key: str, cell: Any) -> Any:  # noqa: ANN401 - a fact of any type
    """Return the fact that a cell holds; None for NaN, which stands for an unknown number."""
    try:
        if key in ("seed", "budget", "batch"):
            return int(cell)
        if key in ("default", "optimum"):
            return None if math.isnan(float(cell)) else float(cell)
        if key in OLDER_FLAGS:
            return {"true": True, "false": False}[str(cell).lower()]
        return parse_json(cell) if key == "options" else str(cell)
    except (ValueError, KeyError, TypeError, OverflowError):
        raise _wrong(place, key, cell) from None


def _row(place: str, record: dict[str, Any]) -> Row:
    value = _number(place, record, "value", math.nan)
    word = record.get("status") or ("ok" if math.isfinite(value) else "runtime_error")
    if word not in STATUS:
        raise _wrong(place, "status", word)
    number = _number(place, record, "evaluation", math.nan)
    if not number.is_integer():
        raise _wrong(place, "evaluation", record["evaluation"])
    digest, config, reason = (str(record.get(key) or "") for key in ("digest", "config", "reason"))
    strategy, evaluation = (_number(place, record, f"{whose}_seconds", 0.0) for whose in ("strategy", "evaluation"))
    return Row(int(number), digest, value, STATUS[word], strategy, evaluation, config, reason)


def _number(place: str, record: dict[str, Any], key: str, otherwise: float) -> float:
    cell = record.get(key)
    try:
        return otherwise if cell in (None, "") else float(cell)
    except (ValueError, TypeError):
        raise _wrong(place, key, cell) from None


def _wrong(place: str, key: str, cell: Any) -> ValueError:  # noqa: ANN401 - whatever stands there
    return ValueError(f"{place} has {str(cell)[:60]!r} as its {key}")
