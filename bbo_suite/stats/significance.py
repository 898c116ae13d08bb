"""Tests of whether two strategies differ by more than chance, and their correction for several comparisons."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

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
