"""Numbers and lists as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..core.quantities import with_noun

if TYPE_CHECKING:
    from ..scores import Pair


def speedup(value: float) -> str:
    """Return a speedup, with four decimals because gains of 0.1 % matter."""
    if not math.isfinite(value):
        return "infinite" if value > 0 else "–"
    return decimals(value) if value < 100 else f"{value:,.0f}" if value < 1e6 else f"{value:.3g}"


def decimals(value: float) -> str:
    """Return a number with four decimals, never "-0.0000"."""
    return f"{round(value, 4) + 0:.4f}"


def interval(low: float, high: float) -> str:
    """Return the bounds of an interval of speedups, or a dash if there is none."""
    return f"{speedup(low)} to {speedup(high)}" if math.isfinite(low) and math.isfinite(high) else "–"


def percent(ratio: float) -> str:
    """Return how much a ratio exceeds 1, in percent with two digits: 1.012 is `1.2 %`."""
    if not math.isfinite(ratio):
        return "–"
    value = 100 * (ratio - 1)
    if abs(value) >= 100:
        return f"{value:,.0f} %"
    rounded = float(f"{value:.2g}")
    return f"{rounded:.{max(0, 1 - math.floor(math.log10(abs(rounded))))}f} %" if rounded else "0 %"


def p_value(p: float) -> str:
    """Return a p-value, or a dash without a test."""
    return "–" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.2g}" if p < 0.995 else "1"


def p_equals(p: float) -> str:
    """Return a p-value as an equation."""
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def gap(pair: Pair, bounds: str = " ({} to {})") -> str:
    """Return the gap of a pair with its interval: in percent over problems, else as a difference of speedups."""
    if not math.isfinite(pair.gap):
        return "–"
    shown = [percent(x) if pair.problems else decimals(x) for x in (pair.gap, pair.low, pair.high)]
    return shown[0] + (bounds.format(*shown[1:]) if math.isfinite(pair.low) else "")


def share(fraction: float) -> str:
    """Return a fraction in percent; "none" and "all" only if exact."""
    return "none" if fraction == 0 else "all" if fraction == 1 else f"{min(99.9, max(0.1, 100 * fraction)):.1f} %"


def seconds(value: float) -> str:
    """Return a time in seconds."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def listed(names: Iterable[str], most: int = 12) -> str:
    """Return names as an English list; beyond `most`, the number of the others."""
    shown = list(names)
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "none"


def span(numbers: Sequence[int], noun: str = "") -> str:
    """Return one number, or the smallest and the largest of several, with their noun: `10 to 20 runs`."""
    low, high = min(numbers), max(numbers)
    end = with_noun(high, noun) if noun else f"{high:,}"
    return end if low == high else f"{low:,} to {end}"
