"""Fields of JSON that somebody else wrote: each is there and of its type, or one sentence says where it is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

_WORDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
_FAILED = 1e20
"""Older Kernel Tuner caches hold this as the time of what failed."""

SECONDS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "millisecond", "milliseconds", "milisecond", "miliseconds"), 1e3),  # sic: as files have it
    **dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), 1e6),
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), 1e9),
}
"""How many of a unit make a second."""


def get(mapping: Any, key: str, kind: type, place: str) -> Any:  # noqa: ANN401 - JSON
    """Return `mapping[key]`, which has to be of the type.

    Raises:
      ValueError: it is not; `place` says where.
    """
    if not isinstance(mapping, dict):
        raise ValueError(f"{place} is {_word(mapping)}, not an object")
    if key not in mapping:
        raise ValueError(f"{place} has no {key!r}")
    if not isinstance(mapping[key], kind):
        raise ValueError(f"{key!r} of {place} is {_word(mapping[key])}, not {_WORDS[kind]}")
    return mapping[key]


def texts(items: Any, place: str) -> list[str]:  # noqa: ANN401 - JSON
    """Return a list of texts."""
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"{place} is no list of names")
    return items


def number(value: Any, place: str) -> float:  # noqa: ANN401 - JSON
    """Return a cost: a number, finite and not negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{place} is {_word(value)}, not a number")
    try:
        cost = float(value)
    except OverflowError:
        cost = math.inf
    if not (math.isfinite(cost) and cost >= 0):
        shown = "NaN" if math.isnan(cost) else f"{cost:g}"
        raise ValueError(f"{place} is {shown}; a cost is finite and not negative: mark a failure as one, or drop it")
    return cost


def is_failure(cost: float) -> bool:
    """Does a time stand for a failure?"""
    return cost >= _FAILED


def per_second(unit: str, place: str) -> float:
    """Return how many of the unit make a second.

    Raises:
      ValueError: it is no unit of time.
    """
    if unit.strip().lower() not in SECONDS:
        raise ValueError(f"{place} is {unit!r}, no unit of time; write seconds, milliseconds, microseconds or ns")
    return SECONDS[unit.strip().lower()]


def version(document: dict[str, Any], known: str) -> None:
    """Refuse another major version of the schema than is known; a file that names none is taken to be of it."""
    found = document.get("schema_version", known)
    if not isinstance(found, str) or found.partition(".")[0] != known.partition(".")[0]:
        raise ValueError(f"its schema_version is {str(found)[:40]!r}, but {known} is read here; convert it")


def noise(times: Sequence[Any], place: str) -> dict[str, str]:
    """Return the noise floor as a fact: how repeats of one configuration differ; nothing where there are none."""
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
        raise ValueError(f"{place} hold something that is no finite number; leave them out") from None
    spread = np.sqrt(np.bincount(places, (flat - mean[places]) ** 2) / (lengths - 1)) / np.maximum(mean, 1e-300)
    return {"noise": f"{np.median(spread):.2%} (standard deviation of {lengths.max()} repeats; the median row)"}


def _word(value: Any) -> str:  # noqa: ANN401 - JSON
    return "null" if value is None else _WORDS.get(type(value), type(value).__name__)
