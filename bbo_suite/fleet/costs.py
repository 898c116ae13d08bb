"""What tuning costs, in chip-seconds: before, at most, and after, exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .jobs import RANKED, TOGETHER, Job, Method, Tuned
from .library import KernelLibrary
from .policy import Day, Plan
from .settings import FleetSettings


def compiled(
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


def highest(settings: FleetSettings, compiles: NDArray[np.int64], predicts: bool) -> NDArray[np.float64]:
    """Return the `(n, methods)` highest costs of tuning kernels alone.

    Args:
      compiles: as `compiled` returns it.
      predicts: the model has been paid already.
    """
    again = np.minimum(settings.finalists, compiles) + 1
    costs = compiles * (settings.compile + settings.measure) + again * settings.measure
    costs[:, RANKED] += 0.0 if predicts else settings.model
    costs[:, Method.KNOWN] = settings.compile
    return costs


def of_plan(day: Day, plan: Plan) -> float:
    """Return the highest cost of a plan. Kernels of a program that are measured together share the measurements."""
    shared = np.isin(plan.methods, TOGETHER)
    cost = float(day.costs[plan.kernels[~shared], plan.methods[~shared]].sum())
    for method in TOGETHER:
        kernels = plan.kernels[plan.methods == method]
        own = day.own_costs(method)[kernels]
        cost += own.sum() + _longest(day.costs[kernels, method] - own, day.program[kernels])
    return cost


def of_job(job: Job, tuned: Tuned, settings: FleetSettings, programs: NDArray[np.int64], paid: bool) -> float:
    """Return what a job has cost.

    Args:
      programs: `(n,)` the program with which each kernel was measured, for methods that measure kernels together.
      paid: the learned model has been paid already.
    """
    runs = _longest(tuned.measured, programs) if job.method in TOGETHER else tuned.measured.sum()
    ranked = len(tuned) * settings.model if job.method in RANKED and not paid else 0.0
    return float(settings.compile * tuned.compiled.sum() + settings.measure * runs + ranked)


def _longest(numbers: NDArray, groups: NDArray[np.int64]) -> float:
    """Return the sum over groups of the largest number of each."""
    most = np.zeros(int(groups.max(initial=-1)) + 1)
    np.maximum.at(most, groups, numbers)
    return float(most.sum())
