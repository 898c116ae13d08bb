"""Nothing is believed: the plan of a policy and the results of a worker are checked before they count."""

from __future__ import annotations

import math

import numpy as np

from ..errors import UserError
from .costs import of_plan
from .jobs import Job, Method, Tuned
from .library import KernelLibrary
from .measuring import tune
from .noise import digests
from .policy import Day, Plan
from .settings import FleetSettings

_SLACK = 1e-9


def check_plan(plan: Plan, day: Day, name: str) -> None:
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
    if (cost := of_plan(day, plan)) > day.budget * (1 + _SLACK):
        raise UserError(
            f"{broken} it planned {cost:,.1f} chip-seconds, but {day.budget:,.1f} are left; plan fewer kernels"
        )


def check_tuned(library: KernelLibrary, job: Job, tuned: Tuned, settings: FleetSettings) -> None:
    """Check the results of a worker: their form, their digests, and a sample of them by doing it again.

    Raises:
      UserError: they are not what the job gives.
    """
    wrong = f"a worker returned wrong results for job {job.number} ({job.method.word}), which were not stored:"
    advice = "restart the workers with the same packages as here"
    if not isinstance(tuned, Tuned) or len(tuned) != len(job.kernels):
        raise UserError(f"{wrong} they are not results of {len(job.kernels)} kernels; {advice}")
    if (digests(tuned.settings) != tuned.digest).any():
        raise UserError(f"{wrong} a digest is not that of its settings; {advice}")
    rng = np.random.default_rng([job.seed, job.number, 7])
    places = np.sort(rng.permutation(len(tuned))[: max(1, math.ceil(settings.checked * len(tuned)))])
    again = tune(library, job.of(places), settings)
    same = (again.digest == tuned.digest[places]) & (again.gain == tuned.gain[places])
    same &= (again.compiled == tuned.compiled[places]) & (again.measured == tuned.measured[places])
    if not same.all():
        raise UserError(f"{wrong} {int((~same).sum())} of {len(places)} that were measured again here differ; {advice}")
