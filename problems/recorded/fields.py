"""Checked access to JSON from other tools: one sentence says which field is missing or has the wrong type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from .units import SECONDS

_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}
_FAILED = 1e20
"""Older Kernel Tuner caches have this time, or a larger one, for a configuration that failed."""


def get(mapping: Any, key: str, kind: type, place: str) -> Any:  # noqa: ANN401 - JSON
    """Return `mapping[key]`.

    Raises:
      ValueError: it is missing, or not of type `kind`; `place` says where.
    """
    if not isinstance(mapping, dict):
        raise ValueError(f"{place} is {_type_name(mapping)}, not an object")
    if key not in mapping:
        raise ValueError(f"{place} has no {key!r}")
    if not isinstance(mapping[key], kind):
        raise ValueError(f"{key!r} of {place} is {_type_name(mapping[key])}, not {_NAMES[kind]}")
    return mapping[key]


def texts(items: Any, place: str) -> list[str]:  # noqa: ANN401 - JSON
    """Return a list of texts.

    Raises:
      ValueError: it is something else; `place` says where.
    """
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"{place} is not a list of names")
    return items


def number(value: Any, place: str) -> float:  # noqa: ANN401 - JSON
    """Return a cost.

    Raises:
      ValueError: it is not a finite number, or negative; `place` says where.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{place} is {_type_name(value)}, not a number")
    try:
        cost = float(value)
    except OverflowError:
        cost = math.inf
    if not (math.isfinite(cost) and cost >= 0):
        shown = "NaN" if math.isnan(cost) else f"{cost:g}"
        raise ValueError(f"{place} is {shown}, but a cost is finite and not negative; mark it as a failure, or drop it")
    return cost


def is_failure(cost: float) -> bool:
    """True if a time stands for a failure."""
    return cost >= _FAILED


def per_second(unit: str, place: str) -> float:
    """Return how many of a unit make a second.

    Raises:
      ValueError: it is not a unit of time; `place` says where.
    """
    if unit.strip().lower() not in SECONDS:
        raise ValueError(f"{place} is {unit!r}, not a unit of time; write seconds, milliseconds, microseconds or ns")
    return SECONDS[unit.strip().lower()]


def version(document: dict[str, Any], known: str) -> None:
    """Check the major version of the schema; a file without a version is accepted.

    Raises:
      ValueError: it is another version than `known`.
    """
    given = document.get("schema_version", known)
    if not isinstance(given, str) or given.partition(".")[0] != known.partition(".")[0]:
        raise ValueError(f"its schema_version is {str(given)[:40]!r}, but only {known} is supported; convert the file")


def noise(times: Sequence[Any], place: str) -> dict[str, str]:
    """Return how much repeats of one configuration differ, as a fact for `show`; empty if there are no repeats."""
    repeats = [row for row in times if isinstance(row, list) and len(row) > 1]
    if not repeats:
        return {}
    lengths = np.array([len(row) for row in repeats])
    try:
        flat, places = np.fromiter(chain(*repeats), float), np.repeat(np.arange(len(repeats)), lengths)
        mean = np.bincount(places, flat) / lengths
        if not np.isfinite(mean).all():
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{place} hold a value that is not a finite number; leave them out") from None
    spread = np.sqrt(np.bincount(places, (flat - mean[places]) ** 2) / (lengths - 1)) / np.maximum(mean, 1e-300)
    return {"noise": f"{np.median(spread):.2%} (standard deviation of {lengths.max()} repeats; the median row)"}


def _type_name(value: Any) -> str:  # noqa: ANN401 - JSON
    return "null" if value is None else _NAMES.get(type(value), type(value).__name__)
