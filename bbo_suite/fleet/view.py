"""What a policy is told of a day."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from . import costs
from .beliefs import Beliefs
from .jobs import Method
from .library import KernelLibrary
from .near import can_transfer
from .policy import Day, Policy, Truth
from .population import Population
from .results import Results
from .settings import FleetSettings


class Viewer:
    """Makes the days of a policy.

    Args:
      name: of the policy, for messages.
      beliefs: what the fleet learns.
    """

    def __init__(
        self, library: KernelLibrary, settings: FleetSettings, policy: Policy, name: str, beliefs: Beliefs
    ) -> None:
        self._library, self._settings, self._policy = library, settings, policy
        self._name, self._beliefs = name, beliefs
        one = np.arange(1)
        self._picked = library.picks(one, library.defaults(0, one), 0).shape[1] * library.counts.shape[1]

    def day(
        self,
        population: Population,
        results: Results,
        budget: float,
        live: NDArray[np.int64],
        share: NDArray[np.float64],
        seen: NDArray[np.int64],
        gain: NDArray[np.float64],
    ) -> Day:
        """Return a day.

        Args:
          live: `(n,)` kernels.
          share: `(m,)` of the fleet's time, of each use of a kernel.
          seen: `(k,)` the day on which each kernel was first seen.
          gain: `(k,)` the truth.
        """
        library, settings = self._library, self._settings
        weight = np.bincount(population.kernel, share, len(seen)).astype(np.float64)[live]
        compiles = costs.compiled(library, settings, live, self._picked)
        return Day(
            population.day,
            max(0.0, budget),
            weight * settings.chip_seconds,
            seen[live],
            results.gain[live],
            results.old_gain[live],
            results.tried[live],
            library.family[live],
            library.predicted[live] if self._policy.predicts else None,
            self._prices(population.version, results, live, compiles),
            compiles,
            _heaviest(population, share, len(seen))[live],
            self._beliefs,
            settings,
            self._truth(gain[live]),
        )

    def _prices(
        self, version: int, results: Results, live: NDArray[np.int64], compiles: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the `(n, methods)` highest costs; inf where a method cannot be used."""
        library, settings = self._library, self._settings
        prices = costs.highest(settings, compiles, self._policy.predicts)
        prices[~library.tunable(version)[live]] = np.inf
        prices[~can_transfer(library, results, settings.near)[live], Method.NEAR] = np.inf
        prices[~(results.old_gain[live] > 0), Method.REVALIDATE] = np.inf
        if not self._policy.is_oracle:
            prices[:, Method.KNOWN] = np.inf
        return prices

    def _truth(self, gain: NDArray[np.float64]) -> Callable[[], Truth]:
        def told() -> Truth:
            if not self._policy.is_oracle:
                raise UserError(f"policy {self._name} asks for the truth; only one with is_oracle = True may")
            return Truth(gain)

        return told


def _heaviest(population: Population, share: NDArray[np.float64], kernels: int) -> NDArray[np.int64]:
    """Return the `(kernels,)` programs that spend most on each kernel; 0 for a kernel that none uses."""
    order = np.lexsort((share, population.kernel))
    found = np.zeros(kernels, np.int64)
    found[population.kernel[order]] = population.owner[order]  # the last one counts
    return found
