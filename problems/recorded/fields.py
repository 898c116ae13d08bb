"""Checked access to JSON from other tools, one sentence says which field is missing or of a wrong type; and its units.

Times become seconds, rates are turned round, in all other known units less is better.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds", "milisecond", "miliseconds"), 1e3),  # sic
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), 1e6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e9),
    **dict.fromkeys(("ps", "picosecond", "picoseconds"), 1e12),
    **dict.fromkeys(("min", "minute", "minutes"), 1 / 60),
    **dict.fromkeys(("h", "hour", "hours"), 1 / 3600),
}
"""How many of each unit make a second."""
_PREFIX = r"(?:[kmgtpezunµμ]i?|kilo|mega|giga|tera|peta|milli|micro|nano|pico|kibi|mebi|gibi|tebi|thousand |million )?"
_PRICE = (
    "s|secs?|seconds?|min|minutes?|h|hours?|j|joules?|ws|wh|watt-?hours?|w|watts?"
    "|(?:clock )?cycles?|clocks?|clks?|ticks?"
)
_STORED = "b|bytes?|bits?|instructions?|instrs?|insns?|registers?|transactions?|miss(?:es)?|spills?|kernels?|calls?"
_WORK = (
    "flops?|ops?|operations?|macs?|samples?|images?|img|tokens?|tok|frames?|items?|elements?|elems?|points?|cells?|steps?"
    "|it|its|iters?|iterations?|inferences?|quer(?:y|ies)|requests?|req|updates?|edges?|pixels?|words?|lines?|rows?"
    "|records?|keys?|hashes|rays?|launches|examples?|sequences?|batches|messages?|packets?|events?|evaluations?"
)
_PRICES, _RESOURCES, _WORKS = (re.compile(f"{_PREFIX}(?:{names})") for names in (_PRICE, _STORED, _WORK))
_RATES = {
    **{name: f"{name}/s" for name in ("flop", "op", "it")},
    **{"f": "frame/s", "q": "query/s", "r": "request/s", "b": "byte/s", "bit": "bit/s", "i": "instruction/s"},
}
"""What the short names of rates stand for, without their last letters: `flop` of GFLOPS, `f` of FPS."""
_SHORT = re.compile(r"([kmgtpe]?)(flop|op|it)s|([kmgt]?)(f|q|r|b|i|bit)ps")


@dataclass(frozen=True)
class Unit:
    """How the numbers of a file become costs, of which less is better.

    Attributes:
      name: the unit of these costs.
      divisor: of the numbers.
      turned: True if a cost is 1 / the number, because the file holds a rate.
    """

    name: str
    divisor: float = 1.0
    turned: bool = False


def cost_unit(text: str) -> Unit:
    """Return what to do with numbers in a unit.

    Raises:
      ValueError: it is not known whether less is better.
    """
    plain = " ".join(text.split())
    if plain.lower() in SECONDS:
        return Unit("seconds", SECONDS[plain.lower()])
    whole = _spelled_out(plain)
    above, *below = re.split(r"\s*/\s*|\s+per\s+", whole, flags=re.IGNORECASE)
    if below and _is(above, _RESOURCES, _WORKS) and all(map(_is_price, below)):
        return Unit(f"{'*'.join(below)}/{above}", turned=True)
    of_work, of_data = (len(below) == 1 and _is(below[0], each) for each in (_WORKS, _RESOURCES))
    if (_is_price(above) and (not below or of_work or of_data)) or (_is(above, _RESOURCES) and (not below or of_work)):
        return Unit(plain)
    raise ValueError(
        f"its unit is {plain[:40]!r}, of which it is not known whether less is better;"
        " convert the costs to a known one, such as seconds, joules or bytes, or to a rate such as GFLOP/s"
    )


def _spelled_out(text: str) -> str:
    """Return a unit with the short name of a rate written out: GFLOPS as Gflop/s. FLOPs is a rate or a number."""
    known = {"ipc": "instruction/cycle", "cpi": "cycle/instruction", "edp": "J*s"}.get(text.lower(), text)
    found = None if text.endswith("OPs") else _SHORT.fullmatch(known.lower())
    return f"{known[: len(found[1] or found[3] or '')]}{_RATES[found[2] or found[4]]}" if found else known


def _is_price(text: str) -> bool:
    """Return whether it is a time, an energy, a power, cycles, or a product of these."""
    return all(_is(part, _PRICES) for part in re.split(r"\s*[*·×]\s*", text))


def _is(text: str, *patterns: re.Pattern[str]) -> bool:
    return any(pattern.fullmatch(text.lower()) for pattern in patterns)


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
    cost = _float(value, place)
    if not (math.isfinite(cost) and cost >= 0):
        raise ValueError(
            f"{place} is {_shown(cost)}, but a cost is finite and not negative; mark it as a failure, or drop it"
        )
    return cost


def finite(value: Any, place: str) -> float:  # noqa: ANN401 - JSON
    """Return a number.

    Raises:
      ValueError: it is not a finite number; `place` says where.
    """
    if not math.isfinite(told := _float(value, place)):
        raise ValueError(f"{place} is {_shown(told)}, not a finite number; leave it out")
    return told


def _float(value: Any, place: str) -> float:  # noqa: ANN401 - JSON
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{place} is {_type_name(value)}, not a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _shown(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:g}"


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
