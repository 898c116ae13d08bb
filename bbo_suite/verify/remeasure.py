"""A candidate and the default measured again on this machine: twice, or more often where costs vary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from numpy.typing import NDArray

from ..core.evaluation import measured_pair
from ..core.problem import Problem
from ..errors import UserError, error_boundary
from ..registry import Registry
from ..store.identity import OTHER_CONTENT

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
        raise UserError(f"the problem has changed since: {now} ({OTHER_CONTENT})")
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
