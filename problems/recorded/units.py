"""Units of recorded costs: times become seconds, rates are turned round, in all other known units less is better."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
