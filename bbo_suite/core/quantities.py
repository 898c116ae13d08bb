"""Counts and durations as users write them (`10,000`, `1k`, `1e4`; `90`, `10m`, `1.5h`), and durations as text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal

_COUNT = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_LONGEST = 25
"""The most characters of a number: `Decimal` keeps 28 digits."""
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,2})?)\s*([a-z]*)")


def count(text: str) -> int:
    """Return a whole number; `k`, `m` and `g` stand for 10^3, 10^6 and 10^9.

    Raises:
      ValueError: the text is not a whole number.
    """
    value = _value(text, _COUNT)
    if value is None or value != int(value):
        raise ValueError(f"{text[:60]!r} is not a whole number; write for example 1000, 1k or 1e3")
    return int(value)


def seconds(text: str) -> float:
    """Return a duration in seconds; the units are `s` (default), `m` or `min`, `h` and `d`.

    Raises:
      ValueError: the text is not a duration.
    """
    value = _value(text, _SECONDS)
    if value is None:
        raise ValueError(f"{text[:60]!r} is not a duration; write for example 90, 90s, 10m or 1.5h")
    return float(value)


def _value(text: str, factors: Mapping[str, int]) -> Decimal | None:
    plain = re.sub(r"(?<=\d)[,_](?=\d)", "", text.strip().lower())
    found = _NUMBER.fullmatch(plain) if len(plain) <= _LONGEST else None
    return Decimal(found[1]) * factors[found[2]] if found and found[2] in factors else None


def duration(seconds: float | None) -> str:
    """Return a time in one or two units; a question mark if it is unknown."""
    if seconds is None or not math.isfinite(seconds):
        return "?"
    whole = math.ceil(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 120:
        return f"{minutes} min"
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
