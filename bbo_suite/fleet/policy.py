"""The contract of a policy: what a fleet tunes each day, by which method, within a budget."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .beliefs import Beliefs
from .jobs import Method
from .settings import FleetSettings


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
      beliefs: gains to expect from each method.
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
    beliefs: Beliefs
    settings: FleetSettings
    truth: Callable[[], Truth] = field(repr=False)

    def usable(self, method: Method) -> NDArray[np.bool_]:
        """Return `(n,)` True where a method was not used yet with this compiler and can be."""
        return ~self.tried[:, method] & np.isfinite(self.costs[:, method])

    def expected(self, method: Method) -> NDArray[np.float64]:
        """Return the `(n,)` shares of its time that a method is expected to save beyond what is stored."""
        return self.beliefs.expected(method, self.family, self.gain > 0, self.old_gain, self.predicted)

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

    @abstractmethod
    def plan(self, day: Day) -> Plan:
        """Return what to tune today, at most for `day.budget` by `day.costs`."""
