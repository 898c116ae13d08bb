"""The final value of each run, and what captions say of runs and problems."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import wraps

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..core.level import LEVEL
from ..stats import complete_block
from ..store.frames import REMEASURED
from .style import short

RUN = ["problem", "strategy", "seed"]
_KEPT = ["budget", "evaluation", "default", "speedup"]


def _kept_for_the_last_frame(
    function: Callable[[pd.DataFrame], pd.DataFrame],
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function that computes once for a frame: a figure asks several times, for its curves and its caption."""
    last: list[tuple[weakref.ref[pd.DataFrame], pd.DataFrame]] = []

    @wraps(function)
    def kept(frame: pd.DataFrame) -> pd.DataFrame:
        if not last or last[0][0]() is not frame:
            last[:] = [(weakref.ref(frame), function(frame))]
        return last[0][1].copy()

    return kept


@_kept_for_the_last_frame
def final_values(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the last row of each run, sorted: problem, strategy, seed, level, budget, evaluation,
    default, speedup, least (1 if the run began with the default, so that its speedup cannot be less; else 0).

    Speedups are those measured again on problems where those of all runs were.
    """
    new = np.zeros(len(frame), bool)
    new[-1:] = True
    for column in RUN:
        codes = frame[column].cat.codes if frame[column].dtype == "category" else frame[column]
        values = codes.to_numpy()
        new[:-1] |= values[1:] != values[:-1]
    last = frame.loc[new, with_flags(frame, [*RUN, *_KEPT, *({REMEASURED} & {*frame})])].drop_duplicates(
        RUN, keep="last"
    )
    started = frame.loc[(frame["evaluation"] == 1) & (frame["speedup"] == 1), RUN]
    with_default = set(started.itertuples(index=False, name=None))
    last["least"] = [float(run in with_default) for run in last[RUN].itertuples(index=False, name=None)]
    if REMEASURED in last:
        again = last.pop(REMEASURED)
        missing = again.isna().groupby(last["problem"], observed=True).transform("any")
        last["speedup"], last["least"] = last["speedup"].where(missing, again), last["least"].where(missing, 0.0)
    return last.astype({"problem": "str", "strategy": "str"}).sort_values(RUN, ignore_index=True)


def with_flags(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return columns, and those that say what a strategy knows; frames of older tables lack one of these."""
    return [*columns, *([LEVEL] if LEVEL in frame else [])]


def first_flags(group: pd.DataFrame) -> dict[str, str]:
    """Return what the strategy of a group of rows knows."""
    return {flag: str(group[flag].iloc[0]) for flag in with_flags(group, [])}


def values_by_run(group: pd.DataFrame) -> list[NDArray[np.float64]]:
    """Return the costs of each run of a strategy on a problem, by seed; a `groupby` takes as long as a short run."""
    seeds, values = group["seed"].to_numpy(), group["value"].to_numpy()
    order = np.argsort(seeds, kind="stable")
    return np.split(values[order], np.flatnonzero(np.diff(seeds[order])) + 1)


@_kept_for_the_last_frame
def mean_speedups(frame: pd.DataFrame) -> pd.DataFrame:
    """Return mean speedups over the repeats: one row per problem, one column per strategy, nan without a run."""
    return final_values(frame).pivot_table(index="problem", columns="strategy", values="speedup", aggfunc=_mean)


def _mean(values: pd.Series) -> float:
    return float(np.sort(values).mean())  # pandas returns nan for inf; sorted, so that equal runs have equal means


def complete_means(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the largest part of `mean_speedups` without a gap: problems on which the same strategies ran."""
    means = mean_speedups(frame)
    rows, columns = complete_block(means.notna())
    return means.loc[rows, columns]


def by_mean_rank(means: pd.DataFrame) -> list[str]:
    """Return the strategies of `mean_speedups` by mean rank on the problems that they ran, the best first."""
    places = means.rank(axis=1, ascending=False, pct=True).mean()
    return list(places.sort_values(kind="stable").index)


def runs_text(counts: pd.Series) -> str:
    """Return the number of runs per strategy and problem for a caption."""
    low, high = counts.min(), counts.max()
    return f"n = {low}" if low == high else f"n = {low} to {high}"


def cut_text(frame: pd.DataFrame) -> str:
    """Return how many runs are shorter than their budget, for the end of a caption; empty if none."""
    last = final_values(frame)
    cut = int((last["evaluation"] < last["budget"]).sum())
    return f" {cut:,} of {len(last):,} runs are shorter than their budget." if cut else ""


def noisy_text(frame: pd.DataFrame, curves: bool = False) -> str:
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


def problems_text(frame: pd.DataFrame, used: int) -> str:
    """Return how many problems a figure of `complete_means` covers, for a caption."""
    known = frame["problem"].nunique()
    if used == known:
        return "1 problem" if used == 1 else f"{used} problems"
    return f"the {used} of {known} problems that all of these strategies ran"


def left_out_text(frame: pd.DataFrame) -> str:
    """Return the strategies that `complete_means` leaves out, for the end of a caption; empty if none."""
    absent = sorted(set(mean_speedups(frame).columns) - set(complete_means(frame).columns))
    return (
        f" Left out, because they did not run all of these problems: {', '.join(map(short, absent))}." if absent else ""
    )


def too_few(frame: pd.DataFrame, strategies: int, problems: int) -> str | None:
    """Return why a study has too few strategies or shared problems for a figure, or None."""
    known, means = mean_speedups(frame).shape[1], complete_means(frame)
    if known < strategies:
        return f"needs {strategies} strategies or more, not {known}"
    least = max(strategies, min(2, known))
    common = len(means) if means.shape[1] >= least else 0
    if common >= problems:
        return None
    if problems == 1:
        return f"needs a problem that {least} strategies ran"
    return f"needs {problems} problems or more on which the same {least} strategies ran, and has {common}"
