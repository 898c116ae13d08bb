"""Counts and durations as users write them (`10,000`, `1k`, `1e4`; `90`, `10m`, `1.5h`), and what they mean as text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

_COUNT = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_LONGEST = 25
"""The most characters of a number: `Decimal` keeps 28 digits."""
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,2})?)\s*([a-z]*)")


LARGEST = (1 << 63) - 1
"""The largest count: a budget, for example."""


def count(text: str) -> int:
    """Return a whole number; `k`, `m` and `g` stand for 10^3, 10^6 and 10^9.

    Raises:
      ValueError: the text is not a whole number, or it is above `LARGEST`.
    """
    value = _value(text, _COUNT)
    if value is None or value != int(value):
        raise ValueError(f"{text[:60]!r} is not a whole number; write for example 1000, 1k or 1e3")
    if value > LARGEST:
        raise ValueError(f"{text[:60]} is above {LARGEST:,}")
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


_TIME = re.compile(
    r"(pico|nano|micro|milli)?seconds?|[pnuµm]?s|minutes?|hours?|cycles?|ticks?|time( units?)?|(times|x)( the)? default"
)


def is_time(unit: str) -> bool:
    """Return whether costs in a unit are times: only of these is a ratio a speedup."""
    return _TIME.fullmatch(unit.strip().lower()) is not None


def ratio_name(units: Iterable[str]) -> str:
    """Return what to call the default's cost / a candidate's: *speedup* if all costs are times, else *improvement*."""
    found = set(units)
    return "speedup" if found and all(map(is_time, found)) else "improvement"


def over_default(default: float | None, found: float | None) -> float | None:
    """Return the default's cost / the cost that was found, infinite if that is 0; None if one is not known."""
    if default is None or found is None or not math.isfinite(found):
        return None
    return default / found if found else math.inf


def ratio_text(ratio: float | None) -> str:
    """Return what `over_default` returns in a cell of a table."""
    return "-" if ratio is None else "infinite" if math.isinf(ratio) else f"{ratio:.4f}"


def cost(value: float, unit: str) -> str:
    """Return a cost with its unit."""
    return f"{value:.6g} {unit}".strip()


def effect(ratio: float | None, unit: str) -> str:
    """Return what the default's cost / a candidate's means: `speedup 1.0278`, or `12.3 % fewer bytes`."""
    if ratio is None or math.isnan(ratio):
        return f"{ratio_name([unit])} unknown"
    if is_time(unit):
        return f"speedup {ratio_text(ratio)}"
    saved, noun = 1 - 1 / ratio if ratio else -math.inf, re.sub("^$|^times .*", "cost", unit)
    word = "more" if saved < 0 else "fewer" if is_counted(noun) else "less"
    return f"{_percent(abs(saved))} {word} {noun}"


def is_counted(unit: str) -> bool:
    """Return whether costs in a unit count things, such as bytes."""
    return not is_time(unit) and re.search(r"[^s]s$", unit.split(" (")[0]) is not None


def _percent(share: float) -> str:
    """Return a share with three digits, and at least three decimals of small ones."""
    if not math.isfinite(share):
        return "infinitely"
    value = 100 * share
    return "0 %" if value < 5e-4 else f"{value:.{max(0, 2 - max(-1, math.floor(math.log10(value))))}f} %"


def with_noun(number: int, noun: str) -> str:
    """Return a number with its noun: `1 run`, `1,000 runs`."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return a noun for several: `runs`, `strategies`, `days`."""
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
