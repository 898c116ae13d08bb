"""Where each run ended: what most figures are made of."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..stats import whole
from .style import short

RUN = ["problem", "strategy", "seed"]
_KEPT = ["uses_structure", "budget", "evaluation", "default", "speedup"]


def ends(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the last row of each run, sorted: problem, strategy, seed, uses_structure, budget, evaluation, default,
    speedup.
    """
    new = np.zeros(len(frame), bool)
    new[-1:] = True
    for column in RUN:
        codes = frame[column].cat.codes if frame[column].dtype == "category" else frame[column]
        values = codes.to_numpy()
        new[:-1] |= values[1:] != values[:-1]
    last = frame.loc[new, RUN + _KEPT].drop_duplicates(RUN, keep="last")
    return last.astype({"problem": "str", "strategy": "str"}).sort_values(RUN, ignore_index=True)


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the mean speedup over the repeats: a row a problem, a column a strategy, nan where there is no run."""
    return ends(frame).pivot_table(index="problem", columns="strategy", values="speedup", aggfunc=_mean)


def _mean(values: pd.Series) -> float:
    return float(np.sort(values).mean())  # inf where one is, where pandas says nan; sorted: ties stay ties


def shared(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the largest part of `table` without gaps: strategies that ran on most problems, and what they share."""
    means = table(frame)
    rows, columns = whole(means.notna())
    return means.loc[rows, columns]


def by_rank(means: pd.DataFrame) -> list[str]:
    """Return the strategies of a `table`, the best first by mean rank among those that ran a problem."""
    places = means.rank(axis=1, ascending=False, pct=True).mean()
    return list(places.sort_values(kind="stable").index)


def runs_words(counts: pd.Series) -> str:
    """Return the numbers of runs of strategies on problems as a caption says them."""
    low, high = counts.min(), counts.max()
    return f"n = {low}" if low == high else f"n = {low} to {high}"


def cut_words(frame: pd.DataFrame) -> str:
    """Return how many runs a figure shows for less than their budget, for the end of a caption; nothing if none."""
    last = ends(frame)
    cut = int((last["evaluation"] < last["budget"]).sum())
    return f" Shown for less than their budget: {cut:,} of {len(last):,} runs." if cut else ""


def problems_words(frame: pd.DataFrame, used: int) -> str:
    """Return how many problems a figure of those that are shared is about, for a caption."""
    known = frame["problem"].nunique()
    if used == known:
        return "1 problem" if used == 1 else f"{used} problems"
    return f"the {used} of {known} problems that all of these strategies ran"


def absent_words(frame: pd.DataFrame) -> str:
    """Return which strategies a figure of what is shared leaves out, for the end of a caption; nothing if none."""
    absent = sorted(set(table(frame).columns) - set(shared(frame).columns))
    return f" Left out, as they ran too few of these problems: {', '.join(map(short, absent))}." if absent else ""


def lacks(frame: pd.DataFrame, strategies: int, problems: int) -> str | None:
    """Return why a study has too few strategies, or problems that they share, for a figure; None if enough."""
    known, means = table(frame).shape[1], shared(frame)
    if known < strategies:
        return f"needs {strategies} strategies or more, not {known}"
    least = max(strategies, min(2, known))
    common = len(means) if means.shape[1] >= least else 0
    if common >= problems:
        return None
    if problems == 1:
        return f"needs a problem that {least} strategies ran"
    return f"needs {problems} problems or more on which the same {least} strategies ran, and has {common}"
