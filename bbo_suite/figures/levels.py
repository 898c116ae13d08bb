"""What figures say of levels of knowledge, and which strategies they rank."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from ..core.level import NOT_COUNTED, Level
from . import final_values, style


def knowledge(frame: pd.DataFrame) -> dict[str, Level]:
    """Return what each strategy knows."""
    last = final_values.final_values(frame)
    return {
        row["strategy"]: Level.of(row) for row in last[final_values.with_flags(last, ["strategy"])].to_dict("records")
    }


def ranked(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the strategies that are ranked together: those that see costs of parts only if all do."""
    hearing = [name for name, level in knowledge(frame).items() if level is Level.PARTS]
    if not hearing or set(hearing) >= set(frame["strategy"]):
        return frame
    return frame[~frame["strategy"].isin(hearing)]


def unranked_text(frame: pd.DataFrame) -> str:
    """Return which strategies `ranked` leaves out, for the end of a caption; empty if none."""
    left = sorted(set(frame["strategy"]) - set(ranked(frame)["strategy"]))
    return f" Ranked apart, because they see costs of parts: {', '.join(map(style.short, left))}." if left else ""


def parts_text(levels: Collection[Level]) -> str:
    """Return what a caption must say if some strategies see costs of parts and others do not; else empty."""
    both = Level.PARTS in levels and len(set(levels)) > 1
    return f" With costs of parts, compare measurements saved: {NOT_COUNTED}." if both else ""
