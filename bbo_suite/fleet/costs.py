"""What tuning costs, in chip-seconds: before, at most, and after, exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .jobs import Job, Method, Tuned
from .library import KernelLibrary
from .policy import Day, Plan
from .settings import FleetSettings


def highest(
    library: KernelLibrary, settings: FleetSettings, kernels: NDArray[np.int64], picked: int, predicts: bool
) -> NDArray[np.float64]:
    """Return the `(n, methods)` highest costs of tuning kernels alone.

    Args:
      picked: configurations that the learned model picks in all stages.
      predicts: the model has been paid already.
    """
    every, again = library.counts[kernels].sum(axis=1), settings.finalists + 1
    both = settings.compile + settings.measure
    costs = np.empty((len(kernels), len(Method)))
    costs[:, Method.EXHAUSTIVE] = costs[:, Method.SHARED] = every * both + again * settings.measure
    costs[:, Method.MODEL] = picked * both + again * settings.measure + (0.0 if predicts else settings.model)
    costs[:, Method.NEAR] = settings.near * both + (min(settings.near, settings.finalists) + 1) * settings.measure
    costs[:, Method.REVALIDATE] = both + 2 * settings.measure
    costs[:, Method.KNOWN] = settings.compile
    return costs


def of_plan(day: Day, plan: Plan) -> float:
    """Return the highest cost of a plan. Kernels of a program that are measured together share the measurements."""
    shared = plan.methods == Method.SHARED
    alone, kernels = day.costs[plan.kernels[~shared], plan.methods[~shared]].sum(), plan.kernels[shared]
    own = day.own_costs[kernels]
    return float(alone + own.sum() + _longest(day.costs[kernels, Method.SHARED] - own, day.program[kernels]))


def of_job(job: Job, tuned: Tuned, settings: FleetSettings, programs: NDArray[np.int64], paid: bool) -> float:
    """Return what a job has cost.

    Args:
      programs: `(n,)` the program with which each kernel was measured, for `SHARED`.
      paid: the learned model has been paid already.
    """
    runs = _longest(tuned.measured, programs) if job.method == Method.SHARED else tuned.measured.sum()
    ranked = len(tuned) * settings.model if job.method == Method.MODEL and not paid else 0.0
    return float(settings.compile * tuned.compiled.sum() + settings.measure * runs + ranked)


def _longest(numbers: NDArray, groups: NDArray[np.int64]) -> float:
    """Return the sum over groups of the largest number of each."""
    most = np.zeros(int(groups.max(initial=-1)) + 1)
    np.maximum.at(most, groups, numbers)
    return float(most.sum())
