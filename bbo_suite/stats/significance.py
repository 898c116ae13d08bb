"""Is one strategy better than another, over many tasks?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


def paired(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Return the p-value that `(n,)` pairs differ by chance (Wilcoxon signed-rank, two-sided); 1 if all equal."""
    from scipy.stats import wilcoxon

    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    return 1.0 if np.array_equal(a, b) else float(wilcoxon(a, b, zero_method="zsplit").pvalue)


def adjusted(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return `(m,)` p-values corrected for their number (Holm 1979)."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    result = np.empty(len(p))
    result[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return result


@dataclass(frozen=True)
class Ranking:
    """Strategies ranked on every task, 1 is best.

    Attributes:
      ranks: `(k,)` mean ranks.
      p: that all strategies are alike (Friedman); nan for fewer than three strategies or two tasks.
      difference: mean ranks closer than this are not told apart at 5 % (Nemenyi; Demsar 2006, section 3.2.2).
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
