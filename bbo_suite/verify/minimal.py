"""The few changes of a candidate that matter: the others return to the default as long as the cost does not rise."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate
from ..core.problem import Problem
from ..core.quantities import is_counted
from ..errors import error_boundary
from ..timing import enough, middle, settled

ROUNDS = 5
"""Measurements of a candidate whose cost varies, each beside one of the candidate to simplify."""
_TWO_ERRORS = 2 * 1.2533 * 1.4826 / math.sqrt(ROUNDS)
"""Two standard errors of the median of `ROUNDS` normal numbers, as a multiple of their median absolute deviation."""
_FINE, _AT_ONCE, _SECONDS = 0.002, 5, 6.0
"""Of a candidate whose cost is measured in turns: the standard error wanted, pairs at once, and the limit of time."""
_SHARE = 4
"""In turns, what gains less than all changes together divided by this may count as noise."""
_CLEAR = 4
"""A cost that rises by so many times the noise twice needs no further measurement."""
LEAST = 5e-6
"""The smallest share of the cost that a change must gain to be needed: less is 0.000 % in text."""


@dataclass(frozen=True)
class Needed:
    """A change that the cost needs.

    Attributes:
      column: of the parameter.
      gain: how much the cost rises if only this change returns to the default, as a share of the cost; inf if the
        candidate then fails.
    """

    column: int
    gain: float


@dataclass(frozen=True)
class Minimal:
    """A candidate without the changes that gain nothing.

    Attributes:
      config: `(d,)`.
      changes: the number of differences from the default that the candidate had.
      needed: those that are left, the largest gain first.
      evaluations: made to find out.
      noise: the largest rise that counts as none, as a share of the cost: `LEAST`, or more if costs vary.
    """

    config: NDArray
    changes: int
    needed: tuple[Needed, ...]
    evaluations: int
    noise: float


def minimal(problem: Problem, config: NDArray, noisy: bool) -> Minimal:
    """Return a `(d,)` candidate with as many changes returned to the default as its cost allows.

    Changes that interact are returned together. If the cost rises, their halves are tried, down to single changes
    (delta debugging). In the end the cost needs each change that is left.

    Args:
      noisy: True if costs vary; then each is measured several times.

    Raises:
      UserError: the problem breaks its contract.
    """
    reduction, order = _Reduction(problem, config, noisy), _neighbours_together(problem)
    changed = reduction.changed(order)
    reduction.return_groups(changed)
    needed = reduction.return_singles(order)
    return Minimal(reduction.config, len(changed), needed, reduction.evaluations, reduction.noise)


def gain_text(gain: float, cost: float = 0.0, unit: str = "") -> str:
    """Return a gain as text, such as `41 bytes, 1.246 %`; a candidate that fails without the change has no number.

    Args:
      cost: of the candidate; with it, costs that count things are counted.
      unit: of the cost.
    """
    if not math.isfinite(gain):
        return "fails"
    count = f"{round(gain * cost):,} {unit}, " if cost and is_counted(unit) else ""
    return f"{count}{100 * gain:.3f} %"


def _neighbours_together(problem: Problem) -> NDArray[np.int64]:
    """Return the columns in an order that keeps interacting ones near each other, or as they are if none is known."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    with error_boundary(f"problem {problem.id}", "structure"):
        structure = problem.structure()
    d = len(problem.space)
    if structure is None:
        return np.arange(d)
    ones = np.ones(len(structure.neighbours), np.int8)
    graph = csr_array((ones, structure.neighbours, structure.starts), shape=(d, d))
    return np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), np.int64)


class _Reduction:
    """A candidate whose changes return to the default, and the evaluations that this takes."""

    def __init__(self, problem: Problem, config: NDArray, noisy: bool) -> None:
        self.config, self.evaluations, self.noise = config.copy(), 0, LEAST
        self._problem, self._noisy, self._default = problem, noisy, problem.default_row()
        self._in_turns, self._sigma, self._pairs = False, 0.0, _AT_ONCE
        if noisy and problem.ratios(config, self._default, 0, 1):
            self._in_turns = True
            self._measure_noise()
        self._compare_with(config)
        if noisy and not self._in_turns:
            self.noise = max(LEAST, _TWO_ERRORS * median(abs(self._ratio(config) - 1) for _ in range(ROUNDS)))

    def _measure_noise(self) -> None:
        """Compare with the default in turns: the noise decides how many pairs tell a part of the gain."""
        logs, until = list[float](), time.monotonic() + _SECONDS
        while len(logs) < 3 * _AT_ONCE or (len(logs) < enough(self._sigma, _FINE) and time.monotonic() < until):
            logs += self._problem.ratios(self.config, self._default, 1 + len(logs), _AT_ONCE)
            if not all(map(math.isfinite, logs)):  # it fails now and then
                return
            self._sigma = 1.4826 * median(abs(each - median(logs)) for each in logs)
        gain = max(0.0, 1 - middle(logs))
        self._pairs = enough(self._sigma, max(_FINE, gain / (2 * _SHARE)), most=100)
        self.noise = max(LEAST, min(2 * self._sigma / math.sqrt(self._pairs), gain / _SHARE))
        self.evaluations += len(logs)

    def changed(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the columns that differ from the default, in this order."""
        return order[(self.config != self._default)[order]]

    def return_groups(self, columns: NDArray[np.int64]) -> None:
        """Return columns to the default where that costs nothing: all at once, else each half."""
        if len(columns) and not self._rise(columns) <= self.noise and len(columns) > 1:
            self.return_groups(columns[: len(columns) // 2])
            self.return_groups(columns[len(columns) // 2 :])

    def return_singles(self, order: NDArray[np.int64]) -> tuple[Needed, ...]:
        """Return single columns until the cost needs each that is left; return these, the largest gain first."""
        while True:
            needed = [Needed(column, self._rise(column)) for column in self.changed(order).tolist()]
            if not any(each.gain <= self.noise for each in needed):
                shown = self._shown(needed) if self._in_turns else needed
                return tuple(sorted(shown, key=lambda each: -each.gain))

    def _shown(self, needed: list[Needed]) -> Iterator[Needed]:
        """Yield those that an interval shows beside what is left; the others return to the default, smallest first."""
        for each in sorted(needed, key=lambda each: each.gain):
            trial = self._without(each.column)
            ratio = settled(self._turns(trial), _SECONDS)
            if ratio.verdict == "slower":
                yield Needed(each.column, ratio.value - 1)
            else:
                self.config = trial

    def _turns(self, config: NDArray) -> Iterator[float]:
        """Yield logarithms of the ratio to what is left, without end."""
        for first in itertools.count(0, _AT_ONCE):
            self.evaluations += _AT_ONCE
            yield from self._problem.ratios(config, self.config, first, _AT_ONCE)

    def _without(self, columns: NDArray[np.int64] | int) -> NDArray:
        trial = self.config.copy()
        trial[columns] = self._default[columns]
        return trial

    def _rise(self, columns: NDArray[np.int64] | int) -> float:
        """Return how much the cost rises if columns return to the default; they stay there if it does not rise."""
        trial = self._without(columns)
        rise = self._ratio_median(trial) - 1
        if rise <= self.noise:
            self.config = trial
        if rise < (-self.noise if self._noisy else 0):
            self._compare_with(trial)
        return rise

    def _compare_with(self, config: NDArray) -> None:
        """Compare further candidates with this one: none so far is faster by more than the noise."""
        self._fastest, self._cost = config, math.nan if self._noisy else self._measured(config)

    def _turns_median(self, config: NDArray) -> float:
        """Return the ratio that a problem measures in turns, of few pairs if the cost has clearly risen."""
        logs, until = list[float](), time.monotonic() + _SECONDS
        while len(logs) < self._pairs and (not logs or time.monotonic() < until):
            logs += self._problem.ratios(config, self._fastest, len(logs), _AT_ONCE)
            if not median(logs) - _CLEAR * self._sigma / math.sqrt(len(logs)) <= self.noise or not any(logs):
                break
        self.evaluations += len(logs)
        return middle(logs)

    def _ratio_median(self, config: NDArray) -> float:
        """Return the median of several ratios; of two, if both are far above the noise, and of one without noise."""
        if self._in_turns:
            return self._turns_median(config)
        ratios = [self._ratio(config)]
        while self._noisy and len(ratios) < ROUNDS and math.isfinite(ratios[-1]):
            if len(ratios) == 2 and min(ratios) > 1 + _CLEAR * self.noise:
                break
            ratios.append(self._ratio(config))
        return median(ratios) if math.isfinite(ratios[-1]) else math.inf

    def _ratio(self, config: NDArray) -> float:
        """Return the cost of a candidate over that of the fastest, measured one after the other if costs vary."""
        fastest = self._measured(self._fastest) if self._noisy else self._cost
        cost = self._measured(config)
        if 0 < fastest < math.inf:
            return cost / fastest
        return 1.0 if cost == fastest else math.inf

    def _measured(self, config: NDArray) -> float:
        self.evaluations += 1
        return float(evaluate(self._problem, config[None]).values[0])
