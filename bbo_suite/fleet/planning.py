"""Planning: what a policy knows of a day, what methods cost, and the check of its plan before it counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError, error_boundary
from .jobs import RANKED, TOGETHER, Job, Method, Tuned
from .library import KernelLibrary
from .policy import Day, GainEstimates, Plan, Policy, Truth, sum_of_maxima
from .population import Population
from .results import Results, can_transfer
from .settings import FleetSettings

_SLACK = 1e-9
"""Share of a budget by which rounding may exceed it."""


class Planner:
    """Asks a policy for the plan of a day.

    Args:
      name: of the policy, for messages.
      gain_estimates: what the fleet learns.
    """

    def __init__(
        self, library: KernelLibrary, settings: FleetSettings, policy: Policy, name: str, gain_estimates: GainEstimates
    ) -> None:
        self._library, self._settings, self._policy = library, settings, policy
        self._name, self._gain_estimates = name, gain_estimates
        one = np.arange(1)
        self._picked = library.picks(one, library.defaults(0, one), 0).shape[1] * library.counts.shape[1]

    def plan(self, day: Day) -> Plan:
        """Return what the policy plans, checked.

        Raises:
          UserError: it raised an error or broke its contract.
        """
        with error_boundary(f"policy {self._name}", "plan"):
            plan = self._policy.plan(day)
        _check_plan(plan, day, self._name)
        return plan

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
        compiles = _compile_counts(library, settings, live, self._picked)
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
            self._costs(population.version, results, live, compiles),
            compiles,
            _heaviest(population, share, len(seen))[live],
            self._gain_estimates,
            settings,
            self._truth(gain[live]),
        )

    def _costs(
        self, version: int, results: Results, live: NDArray[np.int64], compiles: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the `(n, methods)` highest costs; inf where a method cannot be used."""
        library, settings = self._library, self._settings
        costs = _highest_costs(settings, compiles, self._policy.predicts)
        costs[~library.tunable(version)[live]] = np.inf
        costs[~can_transfer(library, results, settings.near)[live], Method.NEAR] = np.inf
        costs[~(results.old_gain[live] > 0), Method.REVALIDATE] = np.inf
        if not self._policy.is_oracle:
            costs[:, Method.KNOWN] = np.inf
        return costs

    def _truth(self, gain: NDArray[np.float64]) -> Callable[[], Truth]:
        def truth() -> Truth:
            if not self._policy.is_oracle:
                raise UserError(f"policy {self._name} asks for the truth; only one with is_oracle = True may")
            return Truth(gain)

        return truth


def _heaviest(population: Population, share: NDArray[np.float64], kernels: int) -> NDArray[np.int64]:
    """Return the `(kernels,)` programs that spend most on each kernel; 0 for a kernel that none uses."""
    order = np.lexsort((share, population.kernel))
    found = np.zeros(kernels, np.int64)
    found[population.kernel[order]] = population.owner[order]  # the last one counts
    return found


def _compile_counts(
    library: KernelLibrary, settings: FleetSettings, kernels: NDArray[np.int64], picked: int
) -> NDArray[np.int64]:
    """Return the `(n, methods)` configurations of kernels that each method compiles, at most.

    Args:
      picked: what the learned model picks in all stages.
    """
    counts = np.ones((len(kernels), len(Method)), np.int64)
    counts[:, [Method.EXHAUSTIVE, Method.SHARED]] = library.counts[kernels].sum(axis=1, keepdims=True)
    counts[:, [Method.MODEL, Method.SHARED_MODEL]] = picked
    counts[:, Method.NEAR], counts[:, Method.SEARCH] = settings.near, settings.evaluations
    return counts


def _highest_costs(settings: FleetSettings, compiles: NDArray[np.int64], predicts: bool) -> NDArray[np.float64]:
    """Return the `(n, methods)` highest costs of tuning kernels alone.

    Args:
      compiles: as `_compile_counts` returns it.
      predicts: the model has been paid already.
    """
    again = np.minimum(settings.finalists, compiles) + 1
    costs = compiles * (settings.compile + settings.measure) + again * settings.measure
    costs[:, RANKED] += 0.0 if predicts else settings.model
    costs[:, Method.KNOWN] = settings.compile
    return costs


def cost_of_job(job: Job, tuned: Tuned, settings: FleetSettings, programs: NDArray[np.int64], paid: bool) -> float:
    """Return what a job has cost.

    Args:
      programs: `(n,)` the program with which each kernel was measured, for methods that measure kernels together.
      paid: the learned model has been paid already.
    """
    runs = sum_of_maxima(tuned.measured, programs) if job.method in TOGETHER else tuned.measured.sum()
    ranked = len(tuned) * settings.model if job.method in RANKED and not paid else 0.0
    return float(settings.compile * tuned.compiled.sum() + settings.measure * runs + ranked)


def _check_plan(plan: Plan, day: Day, name: str) -> None:
    """Check what a policy has planned.

    Raises:
      UserError: it is no plan, tunes something that cannot be tuned, or costs more than the day's budget.
    """
    broken = f"policy {name} broke its contract on day {day.number}:"
    if not isinstance(plan, Plan):
        raise UserError(f"{broken} plan returned {type(plan).__name__}; it must return a Plan")
    kernels, methods = np.asarray(plan.kernels), np.asarray(plan.methods)
    if kernels.shape != methods.shape or kernels.ndim != 1 or {kernels.dtype.kind, methods.dtype.kind} - {"i", "u"}:
        raise UserError(f"{broken} kernels and methods must be two arrays of whole numbers, equally long")
    if len(kernels) and not (kernels.min() >= 0 and kernels.max() < len(day.seconds)):
        raise UserError(f"{broken} it planned a kernel outside the {len(day.seconds):,} live ones")
    if len(methods) and not (methods.min() >= 0 and methods.max() < len(Method)):
        raise UserError(
            f"{broken} it planned a method that there is not; methods are {', '.join(m.word for m in Method)}"
        )
    if len(np.unique(kernels)) < len(kernels):
        raise UserError(f"{broken} it planned a kernel twice; one method a day is possible")
    unusable = day.tried[kernels, methods] | ~np.isfinite(day.costs[kernels, methods])
    if unusable.any():
        method = Method(int(methods[unusable][0])).word
        raise UserError(f"{broken} it planned {method} for a kernel where it was used already or is impossible")
    if (cost := day.highest_cost(plan)) > day.budget * (1 + _SLACK):
        raise UserError(
            f"{broken} it planned {cost:,.1f} chip-seconds, but {day.budget:,.1f} are left; plan fewer kernels"
        )
