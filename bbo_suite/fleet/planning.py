"""Planning: what a policy knows of a day, what methods cost, and the check of its plan before it counts.

What a policy knows: the programs, which change from day to day whatever is tuned; and of each kernel the latest result
with this compiler and with the one before, and results of close ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..errors import UserError, error_boundary
from .jobs import RANKED, TOGETHER, Job, Method, Tuned
from .library import Groups, KernelLibrary
from .policy import Day, GainEstimates, Plan, Policy, Truth, sum_of_maxima
from .settings import FleetSettings


class Population:
    """P programs with m uses of kernels in all. Days have to be made one after another, from 1.

    Attributes:
      day: the last one that was made.
      version: of the compiler.
      owner: `(m,)` the program of each use.
      kernel: `(m,)` its kernel.
      fresh: `(m,)` True for the uses of programs that were compiled or started again today.
      result: `(m,)` the number of the stored result that each use runs with; -1: the compiler's own settings.
    """

    def __init__(self, library: KernelLibrary, settings: FleetSettings, seed: int) -> None:
        self._library, self._settings, self._seed = library, settings, seed
        self.day, self.version, rng = 0, 0, self._generator(0)
        bases, n = len(library.programs.starts) - 1, settings.programs
        self._popular = rng.permutation(1 / np.arange(1, bases + 1) ** settings.popularity)
        self._popular /= self._popular.sum()
        self._base, self._weight = self._bases(n, rng), self._weights(n, rng)
        self.owner, self.kernel, self._runs = self._uses(np.arange(n), rng)
        self.fresh, self.result = np.ones(len(self.owner), bool), np.full(len(self.owner), -1)

    def _generator(self, day: int) -> Generator:
        return np.random.default_rng([self._seed, day, 28])

    def next_day(self) -> None:
        """Let programs leave, arrive, change, start again and drift; and the compiler be released on its day."""
        self.day += 1
        rng, settings, n = self._generator(self.day), self._settings, self._settings.programs
        self._weight *= np.exp(rng.normal(0, settings.drift, n))
        gone = np.flatnonzero(rng.random(n) < settings.turnover)
        self._base[gone], self._weight[gone] = self._bases(len(gone), rng), self._weights(len(gone), rng)
        self._replace(gone, rng)
        changed = rng.random(n) < settings.recompiled
        self._renew(changed, rng)
        started = changed | (rng.random(n) < settings.restarts)
        started[gone] = True
        if self.day == settings.release:
            self.version += 1
            started[:] = True
        self.fresh = started[self.owner]

    def uses(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `(m,)` shares of the fleet's chip time, of kernels that take `(k,)` seconds by default."""
        own = self._runs * seconds[self.kernel]
        totals = np.bincount(self.owner, own, self._settings.programs)
        return (self._weight / self._weight.sum() / totals)[self.owner] * own

    def fetch(self, latest: NDArray[np.int64]) -> None:
        """Let the programs that are fresh take the `(k,)` latest results of their kernels."""
        self.result[self.fresh] = latest[self.kernel[self.fresh]]

    def _bases(self, n: int, rng: Generator) -> NDArray[np.int64]:
        return rng.choice(len(self._popular), n, p=self._popular)

    def _weights(self, n: int, rng: Generator) -> NDArray[np.float64]:
        return (1 - rng.random(n)) ** (-1 / self._settings.skew)

    def _uses(
        self, programs: NDArray[np.int64], rng: Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the owners, kernels and runs of new programs: those of the catalogue, some replaced by variants."""
        known = self._library.programs
        assert known.runs is not None
        first, counts = known.starts[self._base[programs]], np.diff(known.starts)[self._base[programs]]
        owner = np.repeat(programs, counts)
        places = np.arange(len(owner)) + np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        kernel, varied = known.kernels[places], rng.random(len(owner)) < self._settings.own
        kernel[varied] = _one_of_each(self._library.variants, self._base[owner[varied]], rng)
        return owner, kernel, known.runs[places]

    def _replace(self, gone: NDArray[np.int64], rng: Generator) -> None:
        stays = ~np.isin(self.owner, gone)
        new = self._uses(gone, rng)
        self.owner, self.kernel, self._runs = (
            np.concatenate([old[stays], added])
            for old, added in zip((self.owner, self.kernel, self._runs), new, strict=True)
        )
        self.result = np.concatenate([self.result[stays], np.full(len(new[0]), -1)])

    def _renew(self, changed: NDArray[np.bool_], rng: Generator) -> None:
        places = np.flatnonzero(changed[self.owner] & (rng.random(len(self.owner)) < self._settings.renewed))
        self.kernel[places] = _one_of_each(self._library.variants, self._base[self.owner[places]], rng)


def _one_of_each(groups: Groups, chosen: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
    """Return a random kernel of each of some groups."""
    counts = np.diff(groups.starts)[chosen]
    return groups.kernels[groups.starts[chosen] + (rng.random(len(chosen)) * counts).astype(np.int64)]


class Results:
    """The results of k kernels. Each result has a number; a use of a kernel refers to the one that it runs with.

    Attributes:
      latest: `(k,)` the number of the best result with this compiler; -1: none.
      gain: `(k,)` the share that it saves, as measured; 0 without one.
      settings: `(k, w)` its settings.
      old_gain, old_settings: the same for the compiler before; NaN without a result.
      tried: `(k, methods)` which methods were used with this compiler.
    """

    def __init__(self, library: KernelLibrary, width: int) -> None:
        self._library, k = library, len(library.content)
        self.latest, self.gain, self.settings = np.full(k, -1), np.zeros(k), np.full((k, width), np.nan)
        self.old_gain, self.old_settings = np.full(k, np.nan), np.full((k, width), np.nan)
        self.tried = np.zeros((k, len(Method)), bool)
        self._true: list[NDArray[np.float64]] = [np.zeros(1)]
        self._methods: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
        self._number = 0

    def add(self, job: Job, tuned: Tuned) -> None:
        """Take a job's results; one replaces an older one only if it was measured to save more."""
        self.tried[job.kernels, job.method] = True
        better = tuned.gain > self.gain[job.kernels]
        kernels, settings = job.kernels[better], tuned.settings[better]
        usual = self._library.default_seconds(job.version)[kernels]
        self._true.append(1 - self._library.seconds(job.version, kernels, settings) / usual)
        self._methods.append(np.full(len(kernels), job.method))
        self.latest[kernels] = np.arange(self._number, self._number + len(kernels))
        self._number += len(kernels)
        self.gain[kernels], self.settings[kernels] = tuned.gain[better], settings

    def release(self) -> None:
        """Let all results become old: another compiler's fingerprints differ from those in the store."""
        known = self.latest >= 0
        self.old_gain[known], self.old_settings[known] = self.gain[known], self.settings[known]
        self.latest[:], self.gain[:], self.tried[:] = -1, 0.0, False

    def true_gains(self) -> NDArray[np.float64]:
        """Return the true gain of each result by its number, and 0 behind the last, for uses without a result."""
        return np.concatenate([*self._true[1:], self._true[0]])

    def methods(self) -> NDArray[np.int64]:
        """Return the method of each result by its number, and 0 behind the last."""
        return np.concatenate([*self._methods[1:], self._methods[0]])


def can_transfer(library: KernelLibrary, results: Results, count: int) -> NDArray[np.bool_]:
    """Return `(k,)` True for kernels of families with enough results that save something."""
    saving = results.gain > 0
    counts = np.bincount(library.family[saving], minlength=int(library.family.max()) + 1)
    return counts[library.family] > count  # one may be the kernel's own


def closest_settings(
    library: KernelLibrary, results: Results, kernels: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """Return the `(n, count, w)` settings of the closest kernels with a result, cut to what is legal for each."""
    from scipy.spatial import cKDTree

    found = np.empty((len(kernels), count, results.settings.shape[1]))
    saving = np.flatnonzero(results.gain > 0)
    for family in np.unique(library.family[kernels]).tolist():
        places = np.flatnonzero(library.family[kernels] == family)
        known = saving[library.family[saving] == family]
        _, closest = cKDTree(library.features[known]).query(library.features[kernels[places]], count)
        found[places] = results.settings[known[closest.reshape(len(places), count)]]
    n, m, w = found.shape
    return library.adapted(np.repeat(kernels, m), found.reshape(-1, w)).reshape(n, m, w)


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
