"""Measurements in tables of CATBench (Tørring et al. 2024): CSV with a column for each parameter and each metric."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np

from bbo_suite import Status

from .fields import is_failure, number
from .table import Column, Outcomes, Recording, recording

COST, _FEASIBLE = "compute_time", "Feasibility"
_SETTINGS = ("iterations", "repeats", "timeouts", "wait_between_repeats", "wait_after_run")
"""How a measurement was made; in some tables these columns stand among the parameters."""


_LONGEST_HEADER = 1 << 20


def is_catbench(text: str) -> bool:
    """Return whether a text is a table with CATBench's column of times."""
    header = text[:_LONGEST_HEADER].partition("\n")[0]
    return header[:1] not in ("{", "[") and COST in (name.strip(' "\r') for name in header.split(","))


def read_catbench(text: str) -> Recording:
    """Return the recording of a table; its times are milliseconds, and the columns before them are the parameters.

    Raises:
      ValueError: it is damaged; the message says where.
    """
    columns = _columns(text)
    parameters = list(columns)[: list(columns).index(COST)]
    parameters = [name for name in parameters if name not in (*_SETTINGS, "hostname", _FEASIBLE)]
    if unnamed := [name for name in parameters if not name or name.startswith("Unnamed: ")]:
        raise ValueError(
            f"column {parameters.index(unnamed[0]) + 1} has no name, as a count of rows; drop it, or name it"
        )
    feasible = columns.get(_FEASIBLE, ("1",) * len(columns[COST]))
    outcomes = [_outcome(*cells, place) for place, cells in enumerate(zip(columns[COST], feasible, strict=True), 1)]
    settings = {name.replace("_", " "): set(columns[name]) for name in _SETTINGS if name in columns}
    facts = {"format": "CATBench table", **{name: cells.pop() for name, cells in settings.items() if len(cells) == 1}}
    values = [_values(columns[name], name) for name in parameters]
    return recording(parameters, values, Outcomes.of(outcomes), facts=facts)


def _columns(text: str) -> dict[str, Sequence[str]]:
    try:
        lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
        header, *rows = ([cell.strip() for cell in row] for row in lines if row)
    except csv.Error as error:
        raise ValueError(f"it is no table in CSV ({error}); copy it again") from None
    if len(set(header)) < len(header):
        raise ValueError("its header names a column twice; drop one of the two")
    for place, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise ValueError(f"row {place} has {len(row)} cells, and the header {len(header)}; copy the file again")
    return dict(zip(header, zip(*rows, strict=True) if rows else [()] * len(header), strict=True))


def _outcome(time: str, feasible: str, place: int) -> tuple[float, int, str]:
    """Return cost, status and reason; CATBench writes no time, or 0, for what failed."""
    if _number(feasible or "1", f"{_FEASIBLE!r} of row {place}") == 0:
        return np.inf, Status.RUNTIME_ERROR, "it is marked as not feasible"
    cost = _number(time or "0", f"{COST!r} of row {place}")
    if cost == 0 or is_failure(cost):
        return np.inf, Status.RUNTIME_ERROR, f"a time of {time or 'nothing'} stands for a failure"
    return cost / 1e3, Status.OK, ""


def _number(cell: str, place: str) -> float:
    try:
        value = _numeric(cell)
    except ValueError:
        raise ValueError(f"{place} is {cell[:40]!r}, not a number") from None
    return number(value, place)


def _values(cells: Sequence[str], name: str) -> Column:
    """Return the values of a parameter: numbers if all are, else texts, such as an order of loops."""
    if "" in cells:
        raise ValueError(f"row {cells.index('') + 1} has no value of parameter {name!r}")
    try:
        return [_numeric(cell) for cell in cells]
    except ValueError:
        return cells


def _numeric(cell: str) -> float:
    """Return a number, integers exactly; `1_0`, which Python reads as 10, is a text such as an order of loops."""
    if "_" in cell:
        raise ValueError
    try:
        return int(cell)
    except ValueError:
        return float(cell)
