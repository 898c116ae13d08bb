"""Confidence intervals of means and of differences, and robust means over tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

Statistic = Callable[[Sequence[NDArray[np.float64]]], float]
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


def interquartile_mean(scores: Sequence[ArrayLike]) -> float:
    """Return the mean of the middle half of all runs of all tasks (Agarwal et al. 2021, section 4.2)."""
    values = np.concatenate([np.asarray(task, np.float64) for task in scores])
    cut = len(values) // 4
    ordered = np.partition(values, (cut, len(values) - cut - 1))  # as scipy's trim_mean, which takes 1 ms for checks
    return float(ordered[cut : len(values) - cut].mean())


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
      statistic: computed from all tasks together, such as `interquartile_mean`.
      rng: draws the samples; the same generator gives the same bounds.
    """
    tasks = [np.asarray(task, np.float64) for task in scores]
    values, lengths, drawn = np.concatenate(tasks), [len(task) for task in tasks], []
    ends = np.cumsum(lengths)
    spans = [slice(end - length, end) for end, length in zip(ends.tolist(), lengths, strict=True)]
    sizes, starts = np.repeat(lengths, lengths), np.repeat(ends - lengths, lengths)
    for _ in range(samples):
        sample = values[starts + rng.integers(0, sizes)]
        drawn.append(statistic([sample[span] for span in spans]))
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
