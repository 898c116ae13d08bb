"""The child process that runs Halide: it takes a schedule and returns its time divided by the default's.

The two are timed in turns. A machine's speed may drift by more than half within minutes, because of clock rates, other
programs and caches. Two calls in a row see the same machine, so their ratio drifts far less than either time.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import halide as hl
import numpy as np
from numpy.typing import NDArray

from bbo_suite.timing import middle, pair

from .algorithms import ALGORITHMS

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
    """Return the candidate's time divided by the reference's, over pairs of calls in turns; see `bbo_suite.timing`.

    Args:
      until_settled: end before all pairs are made if the mean of the ratios is settled (AdaTune, Li et al. 2020).
    """
    times: list[float] = []

    def timed(run: Run) -> float:
        times.append(seconds(run, now))
        return times[-1]

    logs = [pair(lambda: timed(candidate), lambda: timed(reference), 0)]
    wanted = int(np.clip(_SECONDS / sum(times), FEWEST, _MOST))
    while len(logs) < wanted and not (until_settled and _is_settled(np.exp(logs))):
        logs.append(pair(lambda: timed(candidate), lambda: timed(reference), len(logs)))
    return middle(logs)


def _is_settled(ratios: NDArray[np.float64]) -> bool:
    """True if the standard error of the mean is at most 1 % of it."""
    count = len(ratios)
    return count >= FEWEST and float(np.std(ratios, ddof=1)) <= _SETTLED * np.sqrt(count) * float(np.mean(ratios))


def least_ratio(candidate: Run, reference: Run, now: Clock) -> float:
    """Return the candidate's least time divided by the reference's, over pairs of calls in turns.

    This is for several threads: if one of them has to wait for a busy core, a call takes twenty times as long.
    """
    pairs: list[tuple[float, float]] = []
    while len(pairs) < FEWEST or (len(pairs) < _MOST and np.sum(pairs) < _THREADED_SECONDS):
        pairs.append((seconds(candidate, now), seconds(reference, now)))
    ours, theirs = np.min(pairs, axis=0)
    return float(ours / theirs)


_RUN = "run the result"
_COMPILE_SECONDS = 60.0
_SLOWEST = 200
"""Time limit of a schedule's runs, in multiples of the default's time."""
_RUN_SECONDS = 20.0
"""Added to that limit: a busy machine may stop a short run for seconds."""
_TOLERANCE = 1e-4
"""Largest error, as a share of the largest number: schedules sum in another order, and fuse products into sums."""
_AUTOSCHEDULE_SECONDS = 300.0
Enter = Callable[[str, float], None]


def serve(
    name: str, extents: tuple[int, ...], output: str, default: str, threads: int, until_settled: bool = False
) -> Callable[[Any, Enter], Any]:
    """Return the handler for one pipeline.

    Args:
      name: of the algorithm.
      extents: of the output, the innermost axis first.
      output: the name of the output function.
      default: the default schedule, which others are compared with.
      threads: number of threads that a parallel loop may use.
      until_settled: end the measuring on one thread when the mean is settled.
    """
    os.environ["HL_NUM_THREADS"] = str(threads)  # Halide's pool reads it when it starts
    warnings.simplefilter("ignore", RuntimeWarning)  # constants become float32, which is intended
    return Timed(name, extents, output, default, threads, until_settled).answer


class Timed:
    """One pipeline with its default schedule, compiled, and the correct result."""

    def __init__(
        self, name: str, extents: tuple[int, ...], output: str, default: str, threads: int, until_settled: bool = False
    ) -> None:
        self._name, self._output, self._threads = name, output, threads
        self._ratio = partial(ratio, until_settled=until_settled) if threads == 1 else least_ratio
        self._now = clock(threads)
        self._target = hl.get_host_target()
        self._buffer = hl.Buffer(hl.Float(32), list(extents))
        self._result = np.asarray(self._buffer)
        self._reference = self._compiled(default)
        self._reference()
        self.correct = self._result.copy()
        self._seconds = self._least()

    def _least(self) -> float:
        """Return the least seconds of ten runs of the default."""
        return min(seconds(self._reference, self._now) for _ in range(10))

    def _algorithm(self) -> dict[str, Any]:
        return ALGORITHMS[self._name](np.random.default_rng(0))

    def _compiled(self, schedule: str) -> Run:
        names = self._algorithm()
        exec(schedule, {"hl": hl, **names})  # the suite wrote this text; users paste the same one
        return self._callable(names)

    def _callable(self, names: Mapping[str, Any]) -> Run:
        compiled = names[self._output].compile_to_callable([], self._target)
        return lambda: compiled(self._buffer)

    def answer(self, request: Any, enter: Enter) -> Any:  # noqa: ANN401 - a ratio, seconds, or why there is none
        """Return a schedule's time divided by the default's, or a status and a reason.

        Args:
          request: a schedule's text, or `("autoscheduler", name, settings)` for the schedule of one of Halide's
            autoschedulers, or `"seconds"` for the default's least time now.
        """
        if request == "seconds":
            return self._least()
        enter("compile the schedule", _COMPILE_SECONDS)
        if isinstance(request, str):
            candidate = self._compiled(request)
        else:
            _, scheduler, settings = request
            candidate = self._autoscheduled(scheduler, settings, enter)
        enter(_RUN, _RUN_SECONDS + _SLOWEST * self._seconds)
        if wrong := self._wrong(candidate):
            return "wrong_result", wrong
        enter(_RUN, _RUN_SECONDS + FEWEST * _SLOWEST * self._seconds)
        return self._ratio(candidate, self._reference, self._now)

    def _wrong(self, candidate: Run) -> str:
        """Run once and return a text that says how wrong the result is; empty if it is correct."""
        self._result[:] = np.nan
        candidate()
        error = float(np.abs(self._result - self.correct).max() / np.abs(self.correct).max())
        return "" if error <= _TOLERANCE else f"differs from the default's result by {error:.2g} of the largest number"

    def _autoscheduled(self, name: str, settings: tuple[tuple[str, str], ...], enter: Enter) -> Run:
        enter(f"autoschedule with {name}", _AUTOSCHEDULE_SECONDS)
        hl.load_plugin(str(next(Path(hl.__file__).parent.rglob(f"libautoschedule_{name.lower()}.*"))))
        names = self._algorithm()
        names[self._output].set_estimates([(0, extent) for extent in self._result.shape[::-1]])
        parameters = hl.AutoschedulerParams(name, {"parallelism": str(self._threads), **dict(settings)})
        hl.Pipeline(names[self._output]).apply_autoscheduler(self._target, parameters)
        return self._callable(names)
