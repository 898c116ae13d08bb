"""Durations as text."""

from __future__ import annotations

import math


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
