"""The contract of a policy: what a fleet tunes each day, by which method, within a budget."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .jobs import RANKED, TOGETHER, Method
from .settings import FleetSettings

_GAIN, _MORE, _LEFT = 0.05, 0.005, 0.5
"""What is expected before anything is measured: of a kernel without a result, with one, and of an old result's gain."""
_WEIGHT = 5.0
"""Results that the mean over all families counts for in a family, and the first expectation counts for in all."""


class GainEstimates:
    """Means of measured gains, by method and family, of kernels without and with a stored result: empirical Bayes."""

    def __init__(self, families: int) -> None:
        self._sums, self._counts = (np.zeros((len(Method), 2, families)) for _ in range(2))
        self._old, self._remaining = 0.0, 0.0
        self._predicted, self._measured = 0.0, 0.0

    def learn(
        self,
        method: Method,
        family: NDArray[np.int64],
        before: NDArray[np.float64],
        after: NDArray[np.float64],
        old: NDArray[np.float64],
        predicted: NDArray[np.float64] | None,
    ) -> None:
        """Take `(n,)` measured gains before and after a method, the old compiler's, and what a model had predicted."""
        more = np.maximum(0, after - before)
        np.add.at(self._sums[method], ((before > 0).astype(int), family), more)
        np.add.at(self._counts[method], ((before > 0).astype(int), family), 1)
        if method == Method.REVALIDATE:
            self._old, self._remaining = self._old + old.sum(), self._remaining + after.sum()
        if method in RANKED and predicted is not None:
            new = before == 0
            self._predicted, self._measured = self._predicted + predicted[new].sum(), self._measured + after[new].sum()

    def expected(
        self,
        method: Method,
        family: NDArray[np.int64],
        has_result: NDArray[np.bool_],
        old: NDArray[np.float64],
        predicted: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """Return the `(n,)` gains to expect beyond what is stored."""
        if method == Method.REVALIDATE:
            share = (self._remaining + _WEIGHT * _GAIN * _LEFT) / (self._old + _WEIGHT * _GAIN)
            return np.where(has_result, 0.0, np.nan_to_num(old) * share)
        sums, counts = self._sums[method], self._counts[method]
        overall = (sums.sum(axis=1) + _WEIGHT * np.array([_GAIN, _MORE])) / (counts.sum(axis=1) + _WEIGHT)
        means = (sums + _WEIGHT * overall[:, None]) / (counts + _WEIGHT)
        found = means[has_result.astype(int), family]
        if method not in RANKED or predicted is None:
            return found
        share = (self._measured + _WEIGHT * _GAIN) / (self._predicted + _WEIGHT * _GAIN)
        return np.where(has_result, found, share * np.maximum(predicted, 0))


@dataclass(frozen=True)
class Truth:
    """What no fleet knows: the true gains of the live kernels. Only for policies that say that they are an oracle.

    Attributes:
      gain: `(n,)` the share of the default's time that the best settings save.
    """

    gain: NDArray[np.float64]


@dataclass(frozen=True)
class Day:
    """What a policy may know of a day. The n live kernels are numbered from 0.

    Attributes:
      number: of the day, from 1.
      budget: chip-seconds that may be spent, with what is left of the days before.
      seconds: `(n,)` chip-seconds that the fleet spends a day on each kernel, with the compiler's settings.
      seen: `(n,)` the day on which each was first seen.
      gain: `(n,)` the share that its stored result saves, as measured; 0 without one.
      old_gain: `(n,)` the same for the compiler before; NaN without a result.
      tried: `(n, methods)` True for methods that were used on a kernel with this compiler.
      family: `(n,)` kernels of a family are likely to gain alike.
      predicted: `(n,)` the gain that a learned model expects; None for a policy that does not pay for it.
      costs: `(n, methods)` chip-seconds at most of each method; inf where it cannot be used.
      compiles: `(n, methods)` configurations that each method compiles, at most.
      program: `(n,)` the program that spends most on each kernel.
      gain_estimates: gains to expect from each method.
      settings: of the fleet.
      truth: called by an oracle.
    """

    number: int
    budget: float
    seconds: NDArray[np.float64]
    seen: NDArray[np.int64]
    gain: NDArray[np.float64]
    old_gain: NDArray[np.float64]
    tried: NDArray[np.bool_]
    family: NDArray[np.int64]
    predicted: NDArray[np.float64] | None
    costs: NDArray[np.float64]
    compiles: NDArray[np.int64]
    program: NDArray[np.int64]
    gain_estimates: GainEstimates
    settings: FleetSettings
    truth: Callable[[], Truth] = field(repr=False)

    def usable(self, method: Method) -> NDArray[np.bool_]:
        """Return `(n,)` True where a method was not used yet with this compiler and can be."""
        return ~self.tried[:, method] & np.isfinite(self.costs[:, method])

    def expected(self, method: Method) -> NDArray[np.float64]:
        """Return the `(n,)` shares of its time that a method is expected to save beyond what is stored."""
        return self.gain_estimates.expected(method, self.family, self.gain > 0, self.old_gain, self.predicted)

    def own_costs(self, method: Method) -> NDArray[np.float64]:
        """Return the `(n,)` chip-seconds to compile what a method tries.

        For methods that measure the kernels of a program together, this is what each kernel costs. On top, a program
        costs what its dearest kernel costs beyond that.
        """
        return (self.settings.compile * self.compiles[:, method]).astype(np.float64)

    def first(self, kernels: NDArray[np.int64], method: Method) -> Plan:
        """Return the plan to tune kernels in a given order by one method, as far as the budget goes."""
        return self.within(kernels, np.full(len(kernels), method))

    def within(self, kernels: NDArray[np.int64], methods: NDArray[np.int64]) -> Plan:
        """Return the plan to tune kernels in a given order, as far as the budget goes."""
        n = int(np.searchsorted(np.cumsum(self.costs[kernels, methods]), self.budget, side="right"))
        return Plan(kernels[:n], methods[:n])

    def highest_cost(self, plan: Plan) -> float:
        """Return the chip-seconds of a plan, at most. Kernels of a program that are measured together share runs."""
        shared = np.isin(plan.methods, TOGETHER)
        cost = float(self.costs[plan.kernels[~shared], plan.methods[~shared]].sum())
        for method in TOGETHER:
            kernels = plan.kernels[plan.methods == method]
            own = self.own_costs(method)[kernels]
            cost += own.sum() + sum_of_maxima(self.costs[kernels, method] - own, self.program[kernels])
        return cost


@dataclass(frozen=True)
class Plan:
    """What to tune on a day, and how.

    Attributes:
      kernels: `(j,)` numbers of live kernels, the most urgent first.
      methods: `(j,)` of `Method`.
    """

    kernels: NDArray[np.int64]
    methods: NDArray[np.int64]


class Policy(ABC):
    """Decides each day what to tune. It holds nothing between days: what it may know is in `Day`."""

    predicts: ClassVar[bool] = False
    """True if it reads `Day.predicted`: the fleet then pays the learned model for each new kernel."""
    is_oracle: ClassVar[bool] = False
    """True if it asks for the truth; then it is no policy that a fleet can have."""
    by_default: ClassVar[bool] = True
    """False if it takes so long that `fleet` runs it only if it is named."""

    @abstractmethod
    def plan(self, day: Day) -> Plan:
        """Return what to tune today, at most for `day.budget` by `day.costs`."""


def sum_of_maxima(numbers: NDArray, groups: NDArray[np.int64]) -> float:
    """Return the sum over groups of the largest number of each."""
    most = np.zeros(int(groups.max(initial=-1)) + 1)
    np.maximum.at(most, groups, numbers)
    return float(most.sum())
