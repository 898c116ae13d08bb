"""Several strategies over many tasks: mean ranks, performance profiles, and the tasks that all of them ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Ranking:
    """Strategies ranked on every task; rank 1 is best.

    Attributes:
      ranks: `(k,)` mean ranks.
      p: p-value of a difference between any of them (Friedman); nan for fewer than three strategies or two tasks.
      difference: critical difference at 5 %: closer mean ranks are not significantly different (Nemenyi; Demsar 2006,
        section 3.2.2).
    """

    ranks: NDArray[np.float64]
    p: float
    difference: float


def ranking(scores: ArrayLike) -> Ranking:
    """Return the ranking of k strategies on N tasks.

    Args:
      scores: `(N, k)`, large is better, no nan; ties share their mean rank.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    table = np.asarray(scores, np.float64)
    tasks, k = table.shape
    ranks = rankdata(-table, axis=1).mean(axis=0)
    if k < 3 or tasks < 2:
        return Ranking(ranks, np.nan, np.nan)
    p = 1.0 if (table == table[:, :1]).all() else float(friedmanchisquare(*table.T).pvalue)
    quantile = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2)
    return Ranking(ranks, p, float(quantile * np.sqrt(k * (k + 1) / (6 * tasks))))


def performance_profile(costs: ArrayLike, factors: ArrayLike) -> NDArray[np.float64]:
    """Return the `(k, f)` share of tasks on which each strategy costs at most each factor times the lowest cost.

    Dolan and More 2002, equation 2.2. A task on which every strategy failed counts as solved by none.

    Args:
      costs: `(N, k)` of k strategies on N tasks; inf where one failed.
      factors: `(f,)`, 1 or more.
    """
    table = np.asarray(costs, np.float64)
    best = table.min(axis=1, keepdims=True)
    within = table[:, :, None] <= best[:, :, None] * np.asarray(factors, np.float64)
    return (within & np.isfinite(table)[:, :, None]).mean(axis=0)


def complete_block(present: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the `(N,)` rows and `(k,)` columns of the largest part of a table in which no value is missing.

    Columns are added in order of falling row count, as long as the part grows. It has two columns or more if any two
    share a row.

    Args:
      present: `(N, k)`, true where the table has a value.
    """
    mask = np.asarray(present, bool)
    order = np.argsort(-mask.sum(axis=0), kind="stable")
    rows = np.logical_and.accumulate(mask[:, order], axis=1)  # those without a gap in the first columns
    number, width = rows.sum(axis=0), np.arange(1, len(order) + 1)
    ranks = np.lexsort((number, number * width, np.minimum(width, 2) * (number > 0)))
    if not len(ranks):
        return np.ones(len(mask), bool), np.ones(0, bool)
    return rows[:, ranks[-1]], np.isin(np.arange(len(order)), order[: width[ranks[-1]]])
