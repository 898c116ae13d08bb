"""Tests of differences between strategies, and strategies ranked over many tasks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_EXACT = 1000
"""Largest number of ways to split two tied samples that are enumerated: six runs each."""


_PAIRS = 50
"""Pairs up to which the signed-rank test is exact."""


def signed_rank_p(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Return the p-value of a difference between `(n,)` pairs (Wilcoxon signed-rank, two-sided); 1 if all are equal.

    Exact for up to 50 pairs, with ties and equal pairs too, whose ranks are split between both sides. (scipy takes a
    quarter of a second for what takes a fraction of a millisecond here.)
    """
    from scipy.stats import rankdata, wilcoxon

    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if np.array_equal(a, b):
        return 1.0
    if len(a) > _PAIRS:
        return float(wilcoxon(a, b, zero_method="zsplit").pvalue)
    ranks = np.rint(2 * rankdata(np.abs(a - b))).astype(int)[a != b]  # whole numbers: ties have halves
    ways = np.ones(1)
    for rank in ranks.tolist():  # of each sum of the ranks of one side, in how many ways signs can give it
        ways = np.concatenate([ways, np.zeros(rank)]) + np.concatenate([np.zeros(rank), ways])
    found = int(ranks[(a > b)[a != b]].sum())
    tail = min(ways[: found + 1].sum(), ways[found:].sum()) / ways.sum()
    return float(min(1.0, 2 * tail))


def signed_rank_sum(differences: ArrayLike) -> float:
    """Return the sum of the ranks of the positive of `(n,)` differences, minus that of the negative ones (Wilcoxon)."""
    from scipy.stats import rankdata

    values = np.asarray(differences, np.float64)
    return float(rankdata(np.abs(values)) @ np.sign(values))


def rank_sum_p(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Return the p-value of a difference between two samples (Mann and Whitney 1947, two-sided); nan for single runs.

    Exact for small samples, with ties too: scipy's approximation calls three equal runs against three others
    significant, although no such split can be.
    """
    return float(rank_sum_p_values([(ours, theirs)])[0])


def rank_sum_p_values(pairs: Sequence[tuple[ArrayLike, ArrayLike]]) -> NDArray[np.float64]:
    """Return `rank_sum_p` of each of m pairs of samples, `(m,)`.

    Pairs of the same sizes are tested by one call: each call of scipy takes a millisecond.
    """
    groups: dict[tuple[int, int, bool], list[int]] = defaultdict(list)
    samples = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in pairs]
    p = np.full(len(samples), np.nan)
    for i, (a, b) in enumerate(samples):
        levels = len(np.unique(np.concatenate([a, b])))
        if min(len(a), len(b)) >= 2:
            p[i] = 1.0
            if levels > 1:
                groups[len(a), len(b), levels < len(a) + len(b)].append(i)
    for (n, m, tied), members in groups.items():
        a, b = (np.array([samples[i][side] for i in members]) for side in (0, 1))
        p[members] = _rank_sum(a, b, tied and math.comb(n + m, n) <= _EXACT)
    return p


def _rank_sum(ours: NDArray[np.float64], theirs: NDArray[np.float64], permute: bool) -> NDArray[np.float64]:
    """Return the `(k,)` p-values of `(k, n)` against `(k, m)` numbers."""
    from scipy.stats import PermutationMethod, mannwhitneyu

    how: dict[str, Any] = {"method": PermutationMethod(n_resamples=_EXACT)} if permute else {}
    return np.asarray(mannwhitneyu(ours, theirs, axis=1, **how).pvalue)


_PERMUTED = 9999
"""Permutations that a stratified test draws."""


def stratified_rank_sum(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]], rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return whether two sides differ over several tasks: a permutation test of ranks within tasks (van Elteren 1960).

    Args:
      pairs: `(n,)` and `(m,)` numbers of the two sides for each task, large is better, n and m 1 or more.
      rng: draws the permutations.

    Returns:
      The statistic, positive if the ranks favour the first side; its two-sided p-value; the smallest that can be.
    """
    from scipy.stats import rankdata

    lead, drawn, ways = 0.0, np.zeros(_PERMUTED), 1
    for ours, theirs in pairs:
        n, ranks = np.size(ours), rankdata(np.concatenate([np.atleast_1d(ours), np.atleast_1d(theirs)]))
        centred, m = ranks - ranks.mean(), len(ranks) - n
        lead += centred[:n].sum() / len(ranks) * (1 / n + 1 / m)
        drawn += (
            rng.permuted(np.tile(centred, (_PERMUTED, 1)), axis=1)[:, :n].sum(axis=1) / len(ranks) * (1 / n + 1 / m)
        )
        ways *= math.comb(len(ranks), n)
    smallest = min(1.0, max(2 / ways, 1 / (_PERMUTED + 1)))
    if len(pairs) == 1 and min(map(np.size, pairs[0])) > 1:
        return lead, rank_sum_p(*pairs[0]), smallest
    extreme = int((np.abs(drawn) >= abs(lead) - 1e-12).sum())
    return lead, (extreme + 1) / (_PERMUTED + 1), smallest


def smallest_rank_sum_p(n: int, m: int) -> float:
    """Return the smallest p-value that a two-sided Mann-Whitney test of n and m runs can give."""
    return 2 / math.comb(n + m, n)


def smallest_signed_rank_p(n: int) -> float:
    """Return the smallest p-value that a two-sided Wilcoxon signed-rank test of n pairs can give."""
    return float(2.0 ** (1 - n))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return `(m,)` p-values, corrected for their number (Holm 1979)."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    result = np.empty(len(p))
    result[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return result


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
