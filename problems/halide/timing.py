"""How long one function takes in multiples of another that is timed in turns with it.

A machine's speed drifts by more than half within minutes: clocks, neighbours, caches. Both of a pair see the same
machine, so their ratio drifts far less than either.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

_SECONDS = 0.1
"""What the pairs of one measurement may take together."""
_THREADED_SECONDS = 1.0
"""The same on several threads."""
FEWEST, _MOST = 3, 31
"""Pairs; a candidate that is slow beyond interest gets few."""

Run = Callable[[], object]
Clock = Callable[[], float]


def clock(threads: int) -> Clock:
    """Return the clock for code on so many threads: of one, its own time, without what others do on its core."""
    return time.thread_time if threads == 1 else time.perf_counter


def seconds(run: Run, now: Clock) -> float:
    """Return the seconds of one call."""
    started = now()
    run()
    return now() - started


def ratio(candidate: Run, reference: Run, now: Clock) -> float:
    """Return the median, over pairs of calls in turns, of the candidate's time over the reference's."""
    pairs = [_pair(candidate, reference, now)]
    wanted = int(np.clip(_SECONDS / sum(pairs[0]), FEWEST, _MOST))
    pairs += [_pair(candidate, reference, now) for _ in range(wanted - 1)]
    return float(np.median([ours / theirs for ours, theirs in pairs]))


def least_ratio(candidate: Run, reference: Run, now: Clock) -> float:
    """Return the candidate's least time over the reference's, of pairs of calls in turns.

    For several threads: on busy cores one of them may wait for its core, and a call takes twenty times as long.
    """
    pairs: list[tuple[float, float]] = []
    while len(pairs) < FEWEST or (len(pairs) < _MOST and np.sum(pairs) < _THREADED_SECONDS):
        pairs.append(_pair(candidate, reference, now))
    ours, theirs = np.min(pairs, axis=0)
    return float(ours / theirs)


def _pair(candidate: Run, reference: Run, now: Clock) -> tuple[float, float]:
    return seconds(candidate, now), seconds(reference, now)
