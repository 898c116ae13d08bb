"""Numbers and lists as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pairs import Pair


def speedup(value: float) -> str:
    """Return a speedup; gains of a tenth of a percent matter, so it has four decimals."""
    if not math.isfinite(value):
        return "infinite" if value > 0 else "–"
    return decimals(value) if value < 100 else f"{value:,.0f}" if value < 1e6 else f"{value:.3g}"


def decimals(value: float) -> str:
    """Return a number with four decimals; nothing is never below nothing."""
    return f"{round(value, 4) + 0:.4f}"


def interval(low: float, high: float) -> str:
    """Return the bounds of an interval of speedups, or a dash where there is none."""
    return f"{speedup(low)} to {speedup(high)}" if math.isfinite(low) and math.isfinite(high) else "–"


def percent(ratio: float) -> str:
    """Return by how much a ratio is above 1, in percent with two digits: 1.012 is `1.2 %`."""
    if not math.isfinite(ratio):
        return "–"
    value = 100 * (ratio - 1)
    if abs(value) >= 100:
        return f"{value:,.0f} %"
    rounded = float(f"{value:.2g}")
    return f"{rounded:.{max(0, 1 - math.floor(math.log10(abs(rounded))))}f} %" if rounded else "0 %"


def p_value(p: float) -> str:
    """Return a p-value, or a dash where there is no test."""
    return "–" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.2g}" if p < 0.995 else "1"


def p_equals(p: float) -> str:
    """Return a p-value as an equation."""
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def gap(pair: Pair, bounds: str = " ({} to {})") -> str:
    """Return by how much the first of a pair is better, with its interval: percent over problems, else a speedup."""
    if not math.isfinite(pair.gap):
        return "–"
    shown = [percent(x) if pair.problems else decimals(x) for x in (pair.gap, pair.low, pair.high)]
    return shown[0] + (bounds.format(*shown[1:]) if math.isfinite(pair.low) else "")


def share(part: float) -> str:
    """Return a part of all in percent: none and all are said of nothing else."""
    return "none" if part == 0 else "all" if part == 1 else f"{min(99.9, max(0.1, 100 * part)):.1f} %"


def seconds(value: float) -> str:
    """Return a time in seconds."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def listed(names: Iterable[str], most: int = 12) -> str:
    """Return names as English lists them; beyond `most` their number stands for the rest."""
    words = list(names)
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "none"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 run`, `1,000 runs`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def span(numbers: Sequence[int]) -> str:
    """Return one number, or the smallest and the largest of several."""
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
