"""A candidate measured again on this machine: with the default, and until an interval says whether its gain is real."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from numpy.typing import NDArray

from ..core.evaluation import measured_pair, working_baselines
from ..core.problem import Problem
from ..core.quantities import is_time
from ..errors import UserError, error_boundary
from ..registry import Registry
from ..store.identity import OTHER_CONTENT
from ..timing import Ratio, settled

REPEATS = 7
"""The number of measurements of a cost that varies. The first two show whether it varies."""


@dataclass(frozen=True)
class Remeasured:
    """Costs of the default and of a candidate, measured alternately.

    Attributes:
      defaults, values: in the problem's unit, in order; inf where it failed.
      failure: why the candidate failed, empty if it never did.
    """

    defaults: tuple[float, ...]
    values: tuple[float, ...]
    failure: str = ""

    @property
    def noisy(self) -> bool:
        """True if costs differ between measurements."""
        return len(set(self.values)) > 1 or len(set(self.defaults)) > 1

    @property
    def value(self) -> float:
        """The median cost of the candidate."""
        return median(self.values)

    @property
    def speedup(self) -> float | None:
        """The median of the default's costs over the candidate's; None where the candidate fails or costs nothing."""
        if not all(0 < value < math.inf for value in self.values):
            return None
        return median(default / value for default, value in zip(self.defaults, self.values, strict=True))

    @property
    def spread(self) -> float:
        """The range of the candidate's or the default's costs over their median, whichever is larger."""
        return max(_range(self.values), _range(self.defaults))


def _range(values: tuple[float, ...]) -> float:
    middle = median(values)
    return (max(values) - min(values)) / middle if 0 < middle < math.inf else 0.0


def fresh(registry: Registry, problem_id: str, fingerprint: str) -> Problem:
    """Return a problem loaded again that evaluates every candidate: no cost comes from a cache on disk.

    Raises:
      UserError: it cannot be loaded here, or its content has changed.
    """
    problem = registry.load(problem_id)
    with error_boundary(f"problem {problem_id}", "fingerprint"):
        content = problem.fingerprint()
    if content != fingerprint:
        now = f"its content was {fingerprint} and is {content}"
        raise UserError(f"the problem has changed since: {now} ({OTHER_CONTENT}); go back to it, or run another study")
    problem.leave_cache()
    return problem


def measure(problem: Problem, config: NDArray) -> Remeasured:
    """Return the costs of the default and of an allowed `(d,)` candidate.

    Raises:
      UserError: the default fails, or the problem breaks its contract.
    """
    pairs = [measured_pair(problem, config) for _ in range(2)]
    if len({default for default, _, _ in pairs}) > 1 or len({value for _, value, _ in pairs}) > 1:
        pairs += [measured_pair(problem, config) for _ in range(REPEATS - 2)]
    defaults, values, failures = zip(*pairs, strict=True)
    return Remeasured(defaults, values, next(filter(None, failures), ""))


DEFAULT = "the default"
_AT_ONCE = 5
"""Pairs that a problem measures at once."""


@dataclass(frozen=True)
class Verdict:
    """A candidate compared with the default or a baseline.

    Attributes:
      rival: its name.
      ratio: the candidate's cost over the rival's.
      unit: of the costs.
      exact: whether costs never differ, so that one measurement tells all.
      failure: why the candidate failed, empty if it did not.
    """

    rival: str
    ratio: Ratio
    unit: str
    exact: bool = False
    failure: str = ""

    @property
    def text(self) -> str:
        """What was shown, as in `faster by 4.3 % (3.5 to 5.1)`."""
        if self.failure or not math.isfinite(self.ratio.value):
            return f"FAILS: {self.failure or 'it has no cost'}"
        better, worse = ("faster", "slower") if is_time(self.unit) else ("smaller", "larger")
        gains = [100 * (1 / each - 1) if is_time(self.unit) else 100 * (1 - each) for each in self._ends()]
        if self.ratio.value == 1 and self.ratio.low == self.ratio.high:
            return "the same: equal code, or equal costs"
        if self.ratio.verdict == "not shown":
            return f"not shown ({gains[0]:+.1f} %; {gains[1]:+.1f} to {gains[2]:+.1f})"
        word = better if self.ratio.verdict == "faster" else worse
        middle, *ends = (abs(each) for each in gains)
        between = "" if self.exact else f" ({min(ends):.1f} to {max(ends):.1f})"
        return f"{word} by {middle:.{2 if self.exact else 1}f} %{between}"

    def _ends(self) -> tuple[float, float, float]:
        return self.ratio.value, self.ratio.high, self.ratio.low

    @property
    def is_better(self) -> bool:
        """True if the candidate is shown to be better."""
        return not self.failure and self.ratio.verdict == "faster"

    @property
    def is_worse(self) -> bool:
        """True if the candidate is shown to be worse, or failed."""
        return bool(self.failure) or self.ratio.verdict == "slower"

    def facts(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {"against": self.rival, "verdict": self.text, "better": self.is_better, **asdict(self.ratio)}


def confirm(
    problem: Problem, config: NDArray, seconds: float, rivals: Collection[str] | None = None
) -> Iterator[Verdict]:
    """Yield how a `(d,)` candidate compares with the default and the baselines.

    Args:
      seconds: limit for each comparison.
      rivals: names of those to compare with (default: all that work).

    Raises:
      UserError: the default fails, or the problem breaks its contract.
    """
    known = {DEFAULT: math.nan}
    if rivals is None or set(rivals) - {DEFAULT}:
        known |= working_baselines(problem)
    for name, cost in known.items():
        if rivals is None or name in rivals:
            yield _verdict(problem, config, name, seconds, cost)


def _verdict(problem: Problem, config: NDArray, rival: str, seconds: float, cost: float) -> Verdict:
    if not problem.noisy:
        default, value, failure = measured_pair(problem, config)
        ratio = value / (default if math.isnan(cost) else cost)
        return Verdict(rival, Ratio(ratio, ratio, ratio, 1), problem.unit, True, failure)
    found = settled(_logs(problem, config, rival, cost), seconds)
    failure = "" if math.isfinite(found.value) else measured_pair(problem, config)[2] or "it failed once"
    return Verdict(rival, found, problem.unit, failure=failure)


def _logs(problem: Problem, config: NDArray, rival: str, cost: float) -> Iterator[float]:
    """Yield logarithms of ratios without end: in turns as the problem measures them, else of evaluations."""
    reference = problem.default_row() if rival == DEFAULT else rival
    for first in itertools.count(0, _AT_ONCE):
        logs = problem.ratios(config, reference, first, _AT_ONCE)
        for _ in range(0 if logs else _AT_ONCE):
            default, value, _ = measured_pair(problem, config)
            yield math.log(value / (default if rival == DEFAULT else cost)) if value < math.inf else math.inf
        yield from logs
        if len(logs) and not math.isfinite(logs[-1]):
            return
