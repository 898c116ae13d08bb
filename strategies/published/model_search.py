"""Searches on a surrogate, which is fitted to what was measured, with a share of random candidates."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .best_found import BestFound
from .planned import Planned
from .surrogate import Surrogate


class ModelSearch(Planned):
    """A search whose plans are the best candidates that it finds on a surrogate, and random ones.

    The first plan is random, with the default.
    """

    options: Any
    surrogate: Surrogate

    def begin(self) -> NDArray:
        """Return the rest of the first plan."""
        return self.task.space.sample(self.options.plan - 1, self.rng)

    def learn(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Fit the surrogate."""
        self.surrogate.learn(configs, values)

    def observe(self, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Fit the surrogate to another strategy's candidates, too."""
        super().observe(configs, values)
        self.surrogate.learn(configs, values)

    def share(self) -> float:
        """Return the share of random candidates in the next plan."""
        return self.options.random

    def plan(self) -> NDArray:
        """Return the next plan."""
        if not self.surrogate.is_fitted:  # nothing has run so far
            return self.random(self.options.plan)
        count = int(self.options.plan * self.share())
        best = BestFound(self.task.space, self.archive, self.options.plan - count)
        self.explore(best)
        if not len(best.rows):
            return self.random(self.options.plan)
        return np.concatenate([self.new(self.chosen(best.rows)), self.random(count)])

    def chosen(self, configs: NDArray) -> NDArray:
        """Return which of the best candidates on the surrogate are measured: all."""
        return configs

    @abstractmethod
    def explore(self, best: BestFound) -> None:
        """Search on the surrogate."""
