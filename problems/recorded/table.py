"""The content of a file of measurements, independent of its format."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bbo_suite import Status
from bbo_suite.core.constraint import table

_EXACT = 2.0**53


@dataclass(frozen=True)
class Codes:
    """A column as `(n,)` indices into its distinct values, for columns too long to be held as values."""

    indices: NDArray[np.int64]
    values: list[str]


Column = Sequence[Any] | NDArray | Codes


def encode(column: Column, place: str) -> tuple[NDArray[np.int64], list[Any], bool]:
    """Return the `(n,)` indices of a column, its distinct values, and whether these are numbers in ascending order.

    Other values are sorted by their text, so that nothing depends on the order of measurements.

    Raises:
      ValueError: a value is NaN or infinite; `place` says where.
    """
    if isinstance(column, np.ndarray):
        if not np.isfinite(column).all():
            raise ValueError(f"{place} has a value that is not finite; leave that row out")
        distinct, indices = np.unique(column, return_inverse=True)
        return indices.astype(np.int64), distinct.tolist(), True
    if isinstance(column, Codes):
        order = sorted(range(len(column.values)), key=column.values.__getitem__)
        return np.argsort(order)[column.indices], [column.values[i] for i in order], False
    keys = [value_key(value, place) for value in column]
    values = dict(zip(keys, column, strict=True))
    numeric = all(kind == "number" for kind, _ in values)
    sort = sorted(values, key=(lambda key: key[1]) if numeric else (lambda key: (key[0], str(key[1]))))
    index_of = {key: index for index, key in enumerate(sort)}
    indices = np.fromiter((index_of[key] for key in keys), np.int64, len(keys))
    return indices, [display_value(values[key]) for key in sort], numeric


def value_key(value: Any, place: str) -> tuple[str, Any]:  # noqa: ANN401 - whatever JSON holds
    """Return a key that differs for different values: in Python `1 == True`, but a space may have both."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, list, dict)):
        return type(value).__name__, display_value(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place} has the value {value}; leave that row out")
    return "number", display_value(value)


def display_value(value: Any) -> Hashable:  # noqa: ANN401 - whatever JSON holds
    """Return a value as it is shown in the space: lists and objects as text, 16.0 as 16."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return json.dumps(value, sort_keys=True) if isinstance(value, (list, dict)) else value


@dataclass(frozen=True)
class Recording:
    """Measurements of n different configurations of d parameters.

    Attributes:
      names: of the parameters.
      values: of each parameter those that occur, in ascending order if they are numbers.
      ordered: `(d,)` whether the values are numbers.
      rows: `(n, d)` indices into `values`.
      costs: `(n,)` in `unit`; inf for a failure.
      status: `(n,)` of `Status`.
      reasons: n texts, empty for a configuration that did not fail.
      unit: seconds, unless the file measures something else.
      default: index of the row of the default configuration, -1 if the file names none.
      facts: what else `show` prints.
      statistics: `(n,)` numbers that compiling tells, by name; nan for a configuration that cannot be compiled.
    """

    names: tuple[str, ...]
    values: tuple[Sequence[Any], ...]
    ordered: NDArray[np.bool_]
    rows: NDArray[np.int64]
    costs: NDArray[np.float64]
    status: NDArray[np.int8]
    reasons: tuple[str, ...]
    unit: str
    default: int
    facts: dict[str, str] = field(default_factory=dict)
    statistics: dict[str, NDArray[np.float64]] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of n measurements: `(n,)` costs with inf for failures, `(n,)` statuses, and n reasons."""

    costs: NDArray[np.float64]
    status: NDArray[np.int8]
    reasons: Sequence[str]

    @classmethod
    def of(cls, outcomes: Sequence[Sequence[Any]]) -> Self:
        """Return the outcomes of measurements, each a cost, a status and a reason."""
        costs, status, reasons = zip(*outcomes, strict=True) if outcomes else ((), (), ())
        return cls(np.array(costs, float), np.array(status, np.int8), reasons)


def recording(
    names: Sequence[str],
    columns: Sequence[Column],
    measured: Outcomes,
    unit: str = "seconds",
    default: Mapping[str, Any] | None = None,
    facts: Mapping[str, str] | None = None,
    statistics: Mapping[str, Sequence[float]] | None = None,
) -> Recording:
    """Return the recording of n measurements.

    The cost of a configuration that was measured more than once is the median of its successful measurements; if there
    is none, it failed. Configurations that a known constraint forbade are left out.

    Args:
      columns: the n values of each parameter.
      default: the value of each parameter in the default configuration, if the file names one.
      statistics: what compiling told with each measurement, by name; of a configuration that occurs twice, the first.

    Raises:
      ValueError: there is nothing to search, or the default is not among the configurations.
    """
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ValueError(f"parameter {twice!r} occurs twice; give each parameter its own name")
    if not len(names) or not len(measured.costs):
        raise ValueError(f"it holds {len(measured.costs)} measurements of {len(names)} parameters; record some first")
    parts = [encode(column, f"parameter {name!r}") for name, column in zip(names, columns, strict=True)]
    values, ordered = tuple(part[1] for part in parts), np.array([part[2] for part in parts])
    rows, merged, first = _merged(np.column_stack([part[0] for part in parts]), [len(v) for v in values], measured)
    known = merged.status != Status.FORBIDDEN
    rows, costs, status = rows[known], merged.costs[known], merged.status[known]
    reasons = tuple(reason for reason, kept in zip(merged.reasons, known, strict=True) if kept)
    if not (status == Status.OK).any():
        raise ValueError("all of its configurations failed, so there is nothing to search")
    counted = _counted(measured, len(rows), int((~known).sum()), status)
    told = {name: np.array(numbers, float)[first[known]] for name, numbers in (statistics or {}).items()}
    recording = Recording(
        tuple(names), values, ordered, rows, costs, status, reasons, unit, -1, counted | dict(facts or {}), told
    )
    return (
        recording
        if default is None
        else with_default(recording, _place(recording, default), "the one that the file names")
    )


def with_default(recording: Recording, place: int, why: str) -> Recording:
    """Return the recording with another default.

    Raises:
      ValueError: it failed.
    """
    if recording.status[place] != Status.OK:
        raise ValueError(f"its default configuration failed ({recording.reasons[place]}); name one that works")
    return replace(recording, default=place, facts=recording.facts | {"default is": why})


def with_fallback_default(recording: Recording) -> Recording:
    """Return the recording with a default: the configuration of median cost if the file names none."""
    if recording.default >= 0:
        return recording
    order = np.argsort(recording.costs, kind="stable")
    middle = int(order[(int((recording.status == Status.OK).sum()) - 1) // 2])
    return with_default(recording, middle, "the configuration of median cost: the file names no default")


def _merged(
    rows: NDArray, sizes: ArrayLike, measured: Outcomes
) -> tuple[NDArray[np.int64], Outcomes, NDArray[np.int64]]:
    """Return every configuration once, the median of its costs, and its first measurement."""
    distinct = table(range(rows.shape[1]), rows, np.asarray(sizes))
    places = distinct.places(rows)
    order = np.lexsort((measured.costs, places))
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    worked = np.bincount(places, measured.status == Status.OK, len(starts)).astype(int)
    low, high = (measured.costs[order][starts + np.maximum(0, n)] for n in ((worked - 1) // 2, worked // 2))
    with np.errstate(invalid="ignore"):
        costs = np.where(worked > 0, low + (high - low) / 2, np.inf)
    first = np.full(len(starts), len(rows))
    np.minimum.at(first, places, np.arange(len(rows)))
    status = np.where(worked > 0, Status.OK, measured.status[first]).astype(np.int8)
    reasons = ["" if ok else measured.reasons[i] for ok, i in zip(worked, first.tolist(), strict=True)]
    return distinct.rows, Outcomes(costs, status, reasons), first


def _counted(measured: Outcomes, kept: int, forbidden: int, status: NDArray[np.int8]) -> dict[str, str]:
    counts = {word.word: int((status == word).sum()) for word in Status if word and (status == word).any()}
    repeated = len(measured.costs) - kept - forbidden
    return {
        "configurations": f"{kept:,} measured",
        "failed": ", ".join(f"{count:,} {word}" for word, count in counts.items()) or "none",
        **({"left out": f"{forbidden:,} that a known constraint forbids"} if forbidden else {}),
        **({"repeated": f"{repeated:,} additional measurements; the cost is the median"} if repeated else {}),
    }


def _place(recording: Recording, default: Mapping[str, Any]) -> int:
    wanted = []
    for name, values in zip(recording.names, recording.values, strict=True):
        keys = [value_key(value, name) for value in values]
        if name not in default or (key := value_key(default[name], name)) not in keys:
            raise ValueError(f"the default that it names is not among its configurations: see parameter {name!r}")
        wanted.append(keys.index(key))
    (matches,) = np.nonzero((recording.rows == wanted).all(axis=1))
    if not len(matches):
        raise ValueError("the default that it names is not among its configurations; measure it, or name another")
    return int(matches[0])
