"""What captions say of runs, problems and levels of knowledge, and which strategies figures rank together."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ..core.level import NOT_COUNTED, Level
from ..core.quantities import ratio_name
from ..scores import final_values
from ..store.frames import REMEASURED
from .style import short

if TYPE_CHECKING:
    import pandas as pd


def ratio(frame: pd.DataFrame) -> str:
    """Return what the default's cost / a candidate's is called: speedup if all costs are times, else improvement."""
    return ratio_name(frame["unit"].unique()) if "unit" in frame else "speedup"


def number_of_runs(counts: pd.Series) -> str:
    """Return the number of runs per strategy and problem."""
    low, high = counts.min(), counts.max()
    return f"n = {low}" if low == high else f"n = {low} to {high}"


def runs_of(frame: pd.DataFrame) -> str:
    """Return the number of runs per strategy and problem of a frame of evaluations."""
    return number_of_runs(final_values(frame).frame.groupby(["problem", "strategy"]).size())


def short_runs(frame: pd.DataFrame) -> str:
    """Return how many runs are shorter than their budget, for the end of a caption; empty if none."""
    last = final_values(frame).frame
    cut = int((last["evaluation"] < last["budget"]).sum())
    return f" {cut:,} of {len(last):,} runs are shorter than their budget." if cut else ""


def noisy_costs(frame: pd.DataFrame, curves: bool = False) -> str:
    """Return which measurements of noisy problems are shown, for the end of a caption; empty if none was repeated.

    Args:
      curves: the figure shows what the search measured.
    """
    if REMEASURED not in frame or frame[REMEASURED].isna().all():
        return ""
    return (
        " Noisy costs as the search measured them: too good by chance."
        if curves
        else " Noisy costs: measured again after the search."
    )


def problems_used(frame: pd.DataFrame, used: int) -> str:
    """Return how many problems a figure of `Values.complete` covers."""
    known = frame["problem"].nunique()
    if used == known:
        return "1 problem" if used == 1 else f"{used} problems"
    return f"the {used} of {known} problems that all of these strategies ran"


def strategies_left_out(frame: pd.DataFrame) -> str:
    """Return the strategies that `Values.complete` leaves out, for the end of a caption; empty if none."""
    values = final_values(frame)
    absent = sorted(set(values.table.columns) - set(values.complete.columns))
    return (
        f" Left out, because they did not run all of these problems: {', '.join(map(short, absent))}." if absent else ""
    )


def too_few(frame: pd.DataFrame, strategies: int, problems: int) -> str | None:
    """Return why a study has too few strategies or shared problems for a figure, or None."""
    known, means = final_values(frame).table.shape[1], final_values(frame).complete
    if known < strategies:
        return f"needs {strategies} strategies or more, not {known}"
    least = max(strategies, min(2, known))
    common = len(means) if means.shape[1] >= least else 0
    if common >= problems:
        return None
    if problems == 1:
        return f"needs a problem that {least} strategies ran"
    return f"needs {problems} problems or more on which the same {least} strategies ran, and has {common}"


def ranked_together(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the strategies that are ranked together: those that see costs of parts only if all do."""
    apart = [name for name, level in final_values(frame).levels.items() if level is Level.PARTS]
    if not apart or set(apart) >= set(frame["strategy"]):
        return frame
    return frame[~frame["strategy"].isin(apart)]


def ranked_apart(frame: pd.DataFrame) -> str:
    """Return which strategies `ranked_together` leaves out, for the end of a caption; empty if none."""
    left = sorted(set(frame["strategy"]) - set(ranked_together(frame)["strategy"]))
    return f" Ranked apart, because they see costs of parts: {', '.join(map(short, left))}." if left else ""


def different_levels(levels: Collection[Level]) -> str:
    """Return what a caption must say if some strategies see costs of parts and others do not; else empty."""
    both = Level.PARTS in levels and len(set(levels)) > 1
    return f" With costs of parts, compare measurements saved: {NOT_COUNTED}." if both else ""
