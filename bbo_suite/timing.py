"""Times on a machine that is never quiet: two programs run in turns, and their ratio is judged.

The speed of a machine drifts by more than programs differ, but two runs in a row see the same machine. So the ratio of
a pair drifts far less than either time, and which of the two runs first changes from pair to pair. Children measure,
too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .core.problem import SAME_CODE

Measure = Callable[[], float]
"""Runs something once and returns its cost, such as its seconds; inf if it failed."""
LOOKS = (10, 20, 40, 80, 160)
"""Numbers of pairs after which the interval is looked at."""
_ERROR = 0.0129
"""What each look may be wrong, so that all of them together are wrong in 5 % of cases (Pocock 1977, by simulation)."""
_FINE = 0.005
"""An interval that reaches no farther to either side tells all that matters."""
_SHARE = 0.25
"""One that is clear of 1 ends when it reaches no farther than this share of the gain, too."""
_BEST_SECONDS, _AGAIN_SECONDS = 6.0, 0.7
"""Limits of the second measurement of what seems to be the best, and of each one of a candidate that is known."""
_CLEAR = 3.0
"""A candidate whose ratio is so many standard errors above the best one is not measured further."""


@dataclass(frozen=True)
class Ratio:
    """A candidate's cost over that of a reference.

    Attributes:
      value: the pseudo-median of the pairs' ratios (Hodges and Lehmann 1963).
      low, high: 95 % confidence interval, however many looks were taken.
      pairs: that were measured.
    """

    value: float
    low: float
    high: float
    pairs: int

    @property
    def verdict(self) -> str:
        """`faster`, `slower`, or `not shown`."""
        return "faster" if self.high < 1 else "slower" if self.low > 1 else "not shown"

    @property
    def is_clear(self) -> bool:
        """True if more pairs would tell nothing that matters."""
        reach = max(self.high - self.value, self.value - self.low)
        return reach <= _FINE or (self.verdict != "not shown" and reach <= _SHARE * abs(1 - self.value))


def pair(candidate: Measure, reference: Measure, number: int) -> float:
    """Return the logarithm of a ratio; which of the two runs first depends on the number of the pair."""
    if number % 2:
        ours = candidate()
        theirs = reference()
    else:
        theirs = reference()
        ours = candidate()
    return math.log(ours / theirs) if 0 < ours < math.inf else math.inf


def middle(logs: list[float]) -> float:
    """Return the ratio that the logarithms of ratios tell."""
    return math.exp(float(np.median(_walsh(logs)))) if all(map(math.isfinite, logs)) else math.inf


def ratio(logs: list[float]) -> Ratio:
    """Return the ratio with its interval, from the signed ranks: nothing is assumed but independence and symmetry."""
    if not all(map(math.isfinite, logs)):
        return Ratio(math.inf, math.inf, math.inf, len(logs))
    averages, out = _walsh(logs), _left_out(len(logs))
    if out < 0:
        return Ratio(middle(logs), 0.0, math.inf, len(logs))
    low, value, high = (float(math.exp(x)) for x in (averages[out], np.median(averages), averages[-1 - out]))
    return Ratio(value, low, high, len(logs))


def settled(pairs: Iterator[float], seconds: float = math.inf) -> Ratio:
    """Take pairs until the interval is clear, the last look, or the limit of time, and return the ratio.

    Args:
      pairs: logarithms of ratios, without end.
    """
    until, logs = time.monotonic() + seconds, list[float]()
    for look in LOOKS:
        while len(logs) < look and (time.monotonic() < until or len(logs) < LOOKS[0]):
            logs.append(next(pairs))
            if not math.isfinite(logs[-1]):
                return ratio(logs)
        found = ratio(logs)
        if found.is_clear or len(logs) < look:
            break
    return found


class Ratios:
    """Costs of candidates over that of a reference, measured in turns with it.

    What seems to be the best is measured again: the lowest of many is so by luck, too.

    Args:
      reference: measures it.

    Attributes:
      noise: standard deviation of the logarithm of one ratio of equal programs on this machine.
      cost: the reference's.
    """

    def __init__(self, reference: Measure) -> None:
        self._reference, self._best = reference, 1.0
        self.noise, self.cost = noise_of(reference)

    def of(self, candidate: Measure, again: bool) -> float:
        """Return a candidate's ratio; shorter if it is one of several measurements, which are put together."""
        if again:
            return screened(candidate, self._reference, self.noise, self._best, _AGAIN_SECONDS)
        found = screened(candidate, self._reference, self.noise, self._best)
        if found < self._best:
            found = screened(candidate, self._reference, self.noise, self._best, _BEST_SECONDS)
        self._best = min(self._best, found)
        return found


class SharedCosts:
    """Costs of codes: candidates with the same code share one, unless the same candidate is measured again.

    Args:
      code: the reference's, empty if there is none.
      reference: the reference's cost.
    """

    def __init__(self, code: str, reference: float) -> None:
        self._code, self.reference = code, reference
        self._known, self._asked = dict[str, Any](), set[Hashable]()

    def asked(self, candidate: Hashable) -> bool:
        """Return whether a candidate was measured before, or shares the cost of one that was."""
        return candidate in self._asked

    def of(self, candidate: Hashable, code: str, measure: Callable[[bool], Any]) -> Any:  # noqa: ANN401 - as it does
        """Return the cost of a candidate, or what `measure` returned in its place; a shared one with a remark.

        Args:
          measure: takes whether the candidate is measured again.
        """
        if code and code == self._code:
            return self.reference
        again = self.asked(candidate)
        self._asked.add(candidate)
        if code in self._known and not again:
            outcome = self._known[code]
            return outcome if isinstance(outcome, tuple) else (outcome, SAME_CODE)
        outcome = measure(again)
        if code:
            self._known.setdefault(code, outcome)
        return outcome


def enough(noise: float, error: float, most: int = 60) -> int:
    """Return how many pairs have a standard error as small as this, but 5 at least."""
    return max(5, min(most, math.ceil((noise / error) ** 2)))


def screened(candidate: Measure, reference: Measure, noise: float, best: float, seconds: float = 2.0) -> float:
    """Return a candidate's ratio: of few pairs if it is clearly worse, of more if it may be the best.

    Args:
      noise: standard deviation of the logarithm of one ratio on this machine.
      best: the lowest ratio so far.
      seconds: no pair begins later, but for three.
    """
    until, most, logs = time.monotonic() + seconds, enough(noise, _FINE), list[float]()
    while len(logs) < most and (len(logs) < 3 or time.monotonic() < until):
        logs.append(pair(candidate, reference, len(logs)))
        if not np.median(logs) - _CLEAR * noise / math.sqrt(len(logs)) <= math.log(best):
            break
    return middle(logs)


def noise_of(measure: Measure, pairs: int = 8, seconds: float = 4.0) -> tuple[float, float]:
    """Return the standard deviation of the logarithm of a ratio of equal programs, and the median cost.

    Args:
      seconds: no pair begins later, but for three.
    """
    until, costs = time.monotonic() + seconds, list[tuple[float, float]]()
    while len(costs) < pairs and (len(costs) < 3 or time.monotonic() < until):
        costs.append((measure(), measure()))
    logs = np.log([first / second for first, second in costs])
    return max(1.4826 * float(np.median(abs(logs))), 1e-4), float(np.median(costs))


def smallest_difference(noise: float, pairs: int) -> float:
    """Return the share by which two programs must differ to be told apart by so many pairs."""
    return 2 * noise / math.sqrt(max(1, pairs))


def _walsh(logs: list[float]) -> NDArray[np.float64]:
    """Return the averages of all pairs of numbers, each with itself too, in ascending order."""
    values = np.asarray(logs)
    return np.sort((values[:, None] + values)[np.triu_indices(len(values))] / 2)


@cache
def _left_out(count: int) -> int:
    """Return how many averages lie beyond each end of the interval of so many numbers; -1 if these are too few."""
    chances = np.ones(1)
    for rank in range(1, count + 1):  # the signed-rank statistic takes each rank or does not
        padding = np.zeros(rank)
        chances = (np.concatenate([chances, padding]) + np.concatenate([padding, chances])) / 2
    return int(np.searchsorted(np.cumsum(chances), _ERROR / 2, side="right")) - 1
