"""Tests of whether two strategies differ by more than chance, and their correction for several comparisons."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_EXACT = 1000
"""Largest number of ways to split two tied samples that are enumerated: six runs each."""


def signed_rank_p(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Return the p-value of a difference between `(n,)` pairs (Wilcoxon signed-rank, two-sided); 1 if all are equal."""
    from scipy.stats import wilcoxon

    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    return 1.0 if np.array_equal(a, b) else float(wilcoxon(a, b, zero_method="zsplit").pvalue)


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
    from scipy.stats import PermutationMethod, mannwhitneyu

    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if min(len(a), len(b)) < 2:
        return np.nan
    pooled = np.concatenate([a, b])
    levels = len(np.unique(pooled))
    if levels == 1:
        return 1.0
    exact = levels < len(pooled) and math.comb(len(pooled), len(a)) <= _EXACT
    permutations = PermutationMethod(n_resamples=_EXACT)
    return float((mannwhitneyu(a, b, method=permutations) if exact else mannwhitneyu(a, b)).pvalue)


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
