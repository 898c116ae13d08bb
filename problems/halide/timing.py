"""Measures the time of one function relative to another; the two are timed in turns.

A machine's speed may drift by more than half within minutes, because of clock rates, other programs and caches. Two
calls in a row see the same machine, so their ratio drifts far less than either time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

_SECONDS = 0.1
"""Time limit of all pairs of one measurement, on one thread."""
_THREADED_SECONDS = 1.0
"""The same on several threads."""
FEWEST, _MOST = 3, 31
"""Least and largest number of pairs; a very slow candidate gets few."""

_SETTLED = 0.01

Run = Callable[[], object]
Clock = Callable[[], float]


def clock(threads: int) -> Clock:
    """Return the clock: wall time for several threads, processor time for one, which other programs do not affect."""
    return time.thread_time if threads == 1 else time.perf_counter


def seconds(run: Run, now: Clock) -> float:
    """Return the seconds of one call."""
    started = now()
    run()
    return now() - started


def ratio(candidate: Run, reference: Run, now: Clock, until_settled: bool = False) -> float:
    """Return the median of the candidate's time divided by the reference's, over pairs of calls in turns.

    Args:
      until_settled: end before all pairs are made if the mean of the ratios is settled (AdaTune, Li et al. 2020).
    """
    first = _pair(candidate, reference, now)
    wanted = int(np.clip(_SECONDS / sum(first), FEWEST, _MOST))
    ratios = [first[0] / first[1]]
    while len(ratios) < wanted and not (until_settled and _is_settled(ratios)):
        ours, theirs = _pair(candidate, reference, now)
        ratios.append(ours / theirs)
    return float(np.median(ratios))


def _is_settled(ratios: list[float]) -> bool:
    """True if the standard error of the mean is at most 1 % of it."""
    count = len(ratios)
    return count >= FEWEST and float(np.std(ratios, ddof=1)) <= _SETTLED * np.sqrt(count) * float(np.mean(ratios))


def least_ratio(candidate: Run, reference: Run, now: Clock) -> float:
    """Return the candidate's least time divided by the reference's, over pairs of calls in turns.

    This is for several threads: if one of them has to wait for a busy core, a call takes twenty times as long.
    """
    pairs: list[tuple[float, float]] = []
    while len(pairs) < FEWEST or (len(pairs) < _MOST and np.sum(pairs) < _THREADED_SECONDS):
        pairs.append(_pair(candidate, reference, now))
    ours, theirs = np.min(pairs, axis=0)
    return float(ours / theirs)


def _pair(candidate: Run, reference: Run, now: Clock) -> tuple[float, float]:
    return seconds(candidate, now), seconds(reference, now)
