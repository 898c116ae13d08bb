"""Several strategies share one budget and their candidates; those that improve the best cost get more of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Strategy, Task, Told, UserError, option
from bbo_suite.core.task import Strategies
from bbo_suite.registry import Registry

from .changes import OperatorCredit, probability_matching

_HALF_LIFE = 0.1
"""Share of the budget after which an improvement counts half."""


@dataclass(frozen=True)
class PortfolioOptions:
    """Options of `portfolio`."""

    members: str = option("annealing,evolution,mbo", "strategies that share the budget, separated by commas")
    least: float = option(0.1, "smallest share of the budget for each member", low=0, high=1)


class Portfolio(Strategy):
    """Gives strategies that improve more of the budget (P3BO, Angermueller et al. 2020).

    Each batch comes from one member. That member learns the costs, and all others observe them. A member's credit is
    how much its candidates lowered the best cost, per candidate; older improvements count less. Shares of the budget
    are proportional to credit above a floor, and the member that is furthest below its share is asked next. So only the
    members draw random numbers. Each member has its default options and the whole budget as its schedule.

    Members see no structure, so `local`, `rl` and `joint` lose most of their advantage. Optimizers of other libraries
    learn only from their own candidates.

    Deviations from P3BO: credit is the gain per candidate and not a softmax of relative rewards, whose temperature
    would have to fit the size of a problem's gains; members keep their settings.
    """

    Options: ClassVar[type] = PortfolioOptions
    options: PortfolioOptions

    def __init__(self, task: Task, budget: int, rng: Generator, options: PortfolioOptions) -> None:
        super().__init__(task, budget, rng, options)
        classes = _classes(self.members(options), task.strategies or Registry())
        pairs = zip(classes, rng.spawn(len(classes)), strict=True)
        self._members = [member(task, budget, generator, member.Options()) for member, generator in pairs]
        self._open = np.ones(len(classes), bool)  # true if the member has something left to try
        self._lag, self._credit = np.zeros(len(classes)), OperatorCredit(len(classes))
        self._best, self._asked = np.inf, 0

    @classmethod
    def members(cls, options: PortfolioOptions) -> list[str]:
        """Return the ids of the members."""
        return [name.strip() for name in options.members.split(",") if name.strip()]

    def ask(self, n: int) -> NDArray:
        """Return the next batch of the member that is furthest below its share; no rows when no member has any left."""
        while self._open.any():
            self._asked = int(np.argmax(np.where(self._open, self._lag, -np.inf)))
            configs = self._members[self._asked].ask(n)
            if len(configs):
                return configs
            self._open[self._asked] = False
        return np.empty((0, len(self.task.space)), self.task.space.dtype)

    def tell(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Let every member learn, and update credit and shares."""
        for i, member in enumerate(self._members):
            member.receive(Told(configs, values, own=i == self._asked))
        self._settle(len(values), float(values.min()))

    def _settle(self, count: int, cost: float) -> None:
        improved = np.isfinite(self._best) and cost < self._best  # nobody gets credit for the first finite cost
        self._credit.decay(0.5 ** (count / (_HALF_LIFE * self.budget)))
        self._credit.learn(self._asked, self._best - cost if improved else 0.0, count)
        self._best = min(self._best, cost)
        self._lag += self.shares * count
        self._lag[self._asked] -= count

    @property
    def shares(self) -> NDArray[np.float64]:
        """The `(m,)` shares of the budget that the members deserve now; they add up to 1."""
        rates = self._credit.gains / np.maximum(1, self._credit.trials)
        rates = rates / rates.max() if rates.max() > 0 else np.ones(len(rates))
        return probability_matching(rates, min(self.options.least, 1 / len(rates)), rates.sum())


def _classes(names: list[str], registry: Strategies) -> list[type[Strategy]]:
    """Return the classes of the members.

    Raises:
      UserError: no member is given, or one is given twice, is unknown or is the portfolio itself.
    """
    if not names or len(set(names)) < len(names) or "portfolio" in names:
        listed = ", ".join(names) or "none"
        raise UserError(f"members of portfolio must be different strategies other than itself, not {listed}")
    return [registry.strategy(name) for name in names]
