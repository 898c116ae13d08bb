"""Statistics of runs: arrays in, arrays out. Costs are minimised; scores (speedups, gains) are maximised.

First runs as curves, with what random search is expected to reach; then means with confidence intervals; then tests of
differences between strategies, and strategies ranked over many tasks.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

SMALLEST_GAIN = 1e-4
"""Smallest best gain of which shares are computed: below it, noise would make one strategy 100 % and all others 0 %."""

SMALLEST_GAIN_TEXT = f"{100 * SMALLEST_GAIN:g} %"


def best_so_far(values: ArrayLike) -> NDArray[np.float64]:
    """Return the `(..., n)` running minimum of costs along the last axis."""
    return np.minimum.accumulate(np.asarray(values, np.float64), axis=-1)


def quartiles(values: ArrayLike) -> NDArray[np.float64]:
    """Return `(3, n)`: lower quartile, median and upper quartile over the first axis of `(runs, n)`."""
    return np.quantile(np.asarray(values, np.float64), [0.25, 0.5, 0.75], axis=0)


def area_under(values: ArrayLike, length: int) -> NDArray[np.float64]:
    """Return the mean over `length` evaluations of `(..., n)` curves, holding the last value of shorter ones.

    The normalised area under the curve (any-time performance); for speedups, higher is better.

    Raises:
      ValueError: a curve has no value, or more than `length`.
    """
    curves = np.asarray(values, np.float64)
    n = curves.shape[-1]
    if not 1 <= n <= length:
        raise ValueError(f"curves of {n} evaluations do not fit into {length}")
    return (curves.sum(axis=-1) + (length - n) * curves[..., -1]) / length


def fraction_of_optimum(costs: ArrayLike, optimum: float) -> NDArray[np.float64]:
    """Return optimum / cost, elementwise: 1 where the optimum was found, 0 where every candidate failed (cost inf).

    For an optimum of 0 the fraction is 1 where it was found, else 0.
    """
    values = np.asarray(costs, np.float64)
    if optimum == 0:
        return (values == 0).astype(float)
    return optimum / values


def first_hits(curves: ArrayLike, targets: ArrayLike) -> NDArray[np.float64]:
    """Return the `(runs, targets)` number of evaluations at which each run first costs no more than each target.

    Args:
      curves: `(runs, n)` best cost so far.
      targets: `(t,)` costs; inf is returned for a target that was not reached.
    """
    best, levels = np.asarray(curves, np.float64), np.asarray(targets, np.float64)
    hits = np.empty((len(best), len(levels)))
    for run, curve in enumerate(best):
        after = np.searchsorted(-curve, -levels, side="left")  # curves fall, so their negatives are sorted
        hits[run] = np.where(after < len(curve), after + 1, np.inf)
    return hits


def expected_running_time(hits: ArrayLike, spent: ArrayLike) -> NDArray[np.float64]:
    """Return the `(t,)` expected running time to each target with restarts (ERT; Hansen et al. 2021, COCO).

    The evaluations of all runs before the target, divided by the number of runs that reached it; inf if none did.

    Args:
      hits: `(runs, t)` of `first_hits`.
      spent: `(runs,)` total evaluations of each run.
    """
    reached = np.asarray(hits, np.float64)
    used = np.where(np.isfinite(reached), reached, np.asarray(spent, np.float64)[:, None]).sum(axis=0)
    number = np.isfinite(reached).sum(axis=0)
    return np.where(number > 0, used / np.maximum(1, number), np.inf)


def runtime_ecdf(hits: ArrayLike, evaluations: ArrayLike) -> NDArray[np.float64]:
    """Return the `(n,)` share of all (run, target) pairs that were reached within each of `(n,)` evaluations."""
    sorted_hits = np.sort(np.asarray(hits, np.float64), axis=None)
    return np.searchsorted(sorted_hits, np.asarray(evaluations, np.float64), side="right") / len(sorted_hits)


def expected_best(costs: ArrayLike, budgets: ArrayLike) -> NDArray[np.float64]:
    """Return the `(b,)` expected best cost of random candidates without replacement, exactly.

    With N costs sorted, the best of n draws lies at or behind place k with probability C(N - k, n) / C(N, n). (The cost
    at the expected rank, which is often used instead, is not the expected cost.)

    Args:
      costs: `(N,)` costs of the whole space, finite.
      budgets: `(b,)` numbers of candidates, 1 or more; above N the whole space is evaluated.
    """
    rising = np.sort(np.asarray(costs, np.float64))
    steps = np.append(rising[0], np.diff(rising))
    return np.array([steps @ _all_behind(len(rising), min(int(n), len(rising))) for n in np.asarray(budgets)])


def random_needs(costs: ArrayLike, share: float) -> int:
    """Return how many random candidates are expected to close a share of the gap between the median and the best cost.

    Args:
      costs: `(N,)` costs of the whole space, finite.
    """
    known = np.asarray(costs, np.float64)
    target = np.median(known) - share * (np.median(known) - known.min())
    return 1 + bisect_left(range(1, len(known)), True, key=lambda n: expected_best(known, [n])[0] <= target)


def _all_behind(size: int, n: int) -> NDArray[np.float64]:
    """Return the `(size,)` probabilities that all n draws lie at or behind each place."""
    from scipy.special import gammaln

    k = np.arange(size - n + 1)  # beyond, fewer than n places are left
    logs = gammaln(size - k + 1) - gammaln(size - k - n + 1) - gammaln(size + 1) + gammaln(size - n + 1)
    return np.append(np.exp(logs), np.zeros(n - 1))


_NEAR = 1e-4


def over_random(best: ArrayLike, random: ArrayLike, optimum: float) -> NDArray[np.float64]:
    """Return the improvement over random search: 0 is as good as random, 1 is the optimum, below 0 is worse.

    Willemsen et al. 2024 (a methodology for comparing auto-tuning methods), equation 3, with the exact expectation.

    Args:
      best: `(n,)` best cost so far.
      random: `(n,)` of `expected_best` after as many evaluations. The result is nan where it is within .01 % of the
        optimum: a ratio to so small a difference would be any number.
    """
    base, cost = np.asarray(random, np.float64), np.asarray(best, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(base > optimum + _NEAR * abs(optimum), (base - cost) / (base - optimum), np.nan)


Statistic = Callable[[Sequence[NDArray[np.float64]]], NDArray[np.float64]]
"""Takes the scores of each task, `(n_i,)`, one per run, and returns one number."""


_RESAMPLED = 2000
"""Bootstrap samples of a mean."""


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of `(n,)` independent numbers and the bounds of its confidence interval (Student's t).

    A single number has no interval: both bounds are nan.
    """
    from scipy.special import stdtrit

    numbers = np.asarray(values, np.float64)
    mean = float(numbers.mean())
    if len(numbers) < 2:
        return mean, np.nan, np.nan
    # a quantile of Student's t; `scipy.stats.t` takes a millisecond for it
    half = stdtrit(len(numbers) - 1, (1 + confidence) / 2) * numbers.std(ddof=1) / np.sqrt(len(numbers))
    return mean, float(mean - half), float(mean + half)


@lru_cache(maxsize=8)
def _drawn(n: int) -> NDArray[np.int32]:
    """Return the places of the numbers in each bootstrap sample of n, `(samples, n)`."""
    return np.random.default_rng(0).integers(0, n, (_RESAMPLED, n), dtype=np.int32)


def resampled_interval(values: ArrayLike) -> tuple[float, float, float]:
    """Return the mean of `(n,)` numbers and its 95 % interval (percentile bootstrap): within the range of the numbers.

    A single number, or an infinite one, has no interval: both bounds are nan. Equal numbers have equal intervals: the
    samples are drawn by a generator of their own.
    """
    numbers = np.sort(np.asarray(values, np.float64))
    mean = float(numbers.mean())
    if len(numbers) < 2 or not np.isfinite(mean):
        return mean, np.nan, np.nan
    low, high = np.quantile(numbers[_drawn(len(numbers))].mean(axis=1), [0.025, 0.975])
    return mean, float(min(low, mean)), float(max(high, mean))


def difference_interval(ours: ArrayLike, theirs: ArrayLike) -> tuple[float, float, float]:
    """Return the difference of the means of `(n,)` and `(m,)` numbers and its 95 % interval (Welch 1947).

    The bounds are nan if a sample has one number, and all three are nan if a number is infinite.
    """
    from scipy.special import stdtrit

    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.nan, np.nan, np.nan
    gap = float(a.mean() - b.mean())
    n, m = len(a), len(b)
    if min(n, m) < 2:
        return gap, np.nan, np.nan
    u, v = a.var(ddof=1) / n, b.var(ddof=1) / m
    freedom = (u + v) ** 2 / (u**2 / (n - 1) + v**2 / (m - 1)) if u + v > 0 else 1.0
    half = float(stdtrit(freedom, 0.975) * np.sqrt(u + v))
    return gap, gap - half, gap + half


def interquartile_mean(scores: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Return the mean of the middle half of all runs of all tasks (Agarwal et al. 2021, section 4.2).

    Args:
      scores: of each task, `(..., n_i)`; the result has the shape of the other axes.
    """
    values = np.concatenate([np.asarray(task, np.float64) for task in scores], axis=-1)
    cut, last = values.shape[-1] // 4, values.shape[-1] - 1
    ordered = np.partition(values, (cut, last - cut))  # as scipy's trim_mean, which takes 1 ms for checks
    return ordered[..., cut : last - cut + 1].mean(axis=-1)


def probability_of_improvement(ours: Sequence[ArrayLike], theirs: Sequence[ArrayLike]) -> float:
    """Return the probability that a run of ours beats one of theirs on a random task; ties count half.

    Agarwal et al. 2021, section 4.3: the mean over tasks of the Mann-Whitney statistic, divided by its largest value.

    Args:
      ours, theirs: the scores of each task, `(n_i,)` and `(m_i,)`, large is better.
    """
    return float(np.mean([_superiority(np.asarray(a), np.asarray(b)) for a, b in zip(ours, theirs, strict=True)]))


def _superiority(ours: NDArray, theirs: NDArray) -> float:
    ahead = np.searchsorted(np.sort(theirs), ours, side="left") + np.searchsorted(np.sort(theirs), ours, side="right")
    return float(ahead.sum() / (2 * len(ours) * len(theirs)))


def bootstrap_interval(
    scores: Sequence[ArrayLike], statistic: Statistic, rng: Generator, confidence: float = 0.95, samples: int = 2000
) -> tuple[float, float]:
    """Return the bounds of the percentile bootstrap, which resamples the runs of each task (Agarwal et al. 2021).

    Args:
      scores: the scores of each task, `(n_i,)`, one per run.
      statistic: of all tasks together, such as `interquartile_mean`; it is given `(samples, n_i)` scores of each.
      rng: draws the samples; the same generator gives the same bounds.
    """
    tasks = [np.asarray(task, np.float64) for task in scores]
    lengths = [len(task) for task in tasks]
    ends = np.cumsum(lengths)
    sizes, starts = np.repeat(lengths, lengths), np.repeat(ends - lengths, lengths)
    sampled = np.concatenate(tasks)[starts + rng.integers(0, sizes, (samples, len(sizes)))]
    drawn = statistic(np.split(sampled, ends[:-1], axis=1))
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


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
