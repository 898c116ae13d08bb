"""A fleet day by day, and runs on it: each policy with each daily budget and seed, with the measures that compare them.

Programs come and go, a policy plans, jobs are carried out, results are stored and used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..core.versions import code_version, is_ours
from ..errors import UserError, did_you_mean, error_boundary
from ..files.writing import disk_errors, replacing, write_json
from ..registry import Registry
from .executors import Executor, check_tuned
from .jobs import TOGETHER, Job, Method, Tuned, digests, mixed
from .library import KernelLibrary, Optimum, Progress, optimum
from .planning import Planner, Population, Results, closest_settings, cost_of_job
from .policy import GainEstimates, Plan, Policy
from .settings import FleetSettings
from .store import Block, ResultStore

CHUNK = 256
"""Kernels of a job; more only where a program's kernels are measured together."""


@dataclass(frozen=True)
class DayResult:
    """One day. Shares are of all chip time that the fleet would spend with the compiler's settings.

    Attributes:
      live, new: kernels in use, and those seen for the first time.
      tuned, revalidated: kernels that were tuned, and those whose old result alone was measured again.
      cost: chip-seconds of tuning.
      saved: share that is saved, by true times; regressions count against it.
      lost: share that results lose which are slower than the default in truth.
      slower: uses of such results.
      potential: share that the best settings of all live kernels would save.
      hits: share of the chip time of the programs that were compiled today, for whose kernels the store had a result.
      by_method: the saved share by the method that found the result.
    """

    day: int
    version: int
    live: int
    new: int
    tuned: int
    revalidated: int
    cost: float
    saved: float
    lost: float
    slower: int
    potential: float
    hits: float
    by_method: Mapping[str, float] = field(default_factory=dict)

    def flat(self) -> dict[str, Any]:
        """Return the day as one row of a table."""
        row = asdict(self)
        methods = row.pop("by_method")
        return {**row, **{f"saved_{name}": share for name, share in methods.items()}}


@dataclass
class Fleet:
    """One run: a policy on a fleet with a daily budget.

    Attributes:
      name: of the policy, for messages.
      budget: chip-seconds a day.
      seed: of the fleet's events and of the noise.
      store: already entered; results that it holds are not measured again.
      executor: carries out jobs.
      shown: progress.
    """

    library: KernelLibrary
    settings: FleetSettings
    policy: Policy
    name: str
    budget: float
    seed: int
    store: ResultStore
    executor: Executor
    shown: Progress = lambda text: None

    def __post_init__(self) -> None:
        k, width = len(self.library.content), self.library.defaults(0, np.arange(1)).shape[1]
        self._population = Population(self.library, self.settings, self.seed)
        self._results, self._stored = Results(self.library, width), self.store.blocks(self.library, width)
        self._gain_estimates = GainEstimates(int(self.library.family.max()) + 1)
        self._planner = Planner(self.library, self.settings, self.policy, self.name, self._gain_estimates)
        self._seen, self._left, self._jobs = np.zeros(k, np.int64), 0.0, 0

    def run(self, days: int) -> Iterator[DayResult]:
        """Yield what each day saved and cost.

        Raises:
          UserError: the policy breaks its contract, a worker's results are wrong, or the stored results are of another
            fleet or of more days.
        """
        for _ in range(days):
            yield self._day()
            self.store.sync()
        if next(self._stored, None) is not None:
            raise UserError(f"{self.store.folder} holds results of more days; choose another --study")

    def _day(self) -> DayResult:
        population, results = self._population, self._results
        before = population.version
        population.next_day()
        if population.version != before:
            results.release()
        population.fetch(results.latest)
        usual = self.library.default_seconds(population.version)
        share = population.uses(usual)
        live = np.flatnonzero(np.bincount(population.kernel, minlength=len(usual)))
        new = live[self._seen[live] == 0]
        self._seen[new] = population.day
        best = optimum(self.library, population.version, self.shown)
        saved = self._saved(share, best)
        tuned, revalidated, cost = self._tune(live, len(new), share, best)
        counts = (len(live), len(new), tuned, revalidated)
        return DayResult(population.day, population.version, *counts, cost, **saved)

    def _saved(self, share: NDArray[np.float64], best: Optimum) -> dict[str, Any]:
        """Return what today's uses save; results that are stored later today count from the programs' next start."""
        used = self._population.result
        gains = share * self._results.true_gains()[used]
        by_method = np.bincount(self._results.methods()[used], gains, len(Method))
        slower, fresh = gains < 0, self._population.fresh
        hits = share[fresh & (used >= 0)].sum() / max(share[fresh].sum(), 1e-300)
        return {
            "saved": float(gains.sum()),
            "lost": float(np.abs(gains[slower]).sum()),
            "slower": int(slower.sum()),
            "potential": float(share @ best.gain[self._population.kernel]),
            "hits": float(hits),
            "by_method": {method.word: float(by_method[method]) for method in Method},
        }

    def _tune(
        self, live: NDArray[np.int64], new: int, share: NDArray[np.float64], best: Optimum
    ) -> tuple[int, int, float]:
        """Plan and carry out the day's jobs; return the kernels that were tuned and revalidated, and the cost."""
        spent = self.settings.model * new if self.policy.predicts else 0.0
        self._left += self.budget - spent
        day = self._planner.day(self._population, self._results, self._left, live, share, self._seen, best.gain)
        plan = self._planner.plan(day)
        places = _pieces(plan, day.program)
        jobs = [self._job(number, method, live[own], best) for number, (method, own) in enumerate(places, self._jobs)]
        self._jobs += len(jobs)
        done = zip(jobs, self._carried_out(jobs), places, strict=True)
        costs = [self._take(job, tuned, day.program[own]) for job, tuned, (_, own) in done]
        self._left -= sum(costs)
        again = int((plan.methods == Method.REVALIDATE).sum())
        return len(plan.kernels) - again, again, spent + sum(costs)

    def _take(self, job: Job, tuned: Tuned, programs: NDArray[np.int64]) -> float:
        """Learn from a job's results and return their cost."""
        library, results, kernels = self.library, self._results, job.kernels
        known = (results.gain[kernels], np.maximum(results.gain[kernels], tuned.gain), results.old_gain[kernels])
        predicted = library.predicted[kernels] if self.policy.predicts else None
        self._gain_estimates.learn(job.method, library.family[kernels], *known, predicted)
        results.add(job, tuned)
        return cost_of_job(job, tuned, self.settings, programs, self.policy.predicts)

    def _job(self, number: int, method: Method, kernels: NDArray[np.int64], best: Optimum) -> Job:
        """Return the job to tune kernels by a method, with the candidates that the method takes."""
        candidates = None
        if method == Method.NEAR:
            candidates = closest_settings(self.library, self._results, kernels, self.settings.near)
        elif method == Method.REVALIDATE:
            candidates = self._results.old_settings[kernels][:, None]
        elif method == Method.KNOWN:
            candidates = best.settings[kernels][:, None]
        return Job(number, self._population.version, method, kernels, candidates, self.seed)

    def _carried_out(self, jobs: Sequence[Job]) -> Iterator[Tuned]:
        """Yield the results of jobs: first those that are stored, then what is measured and stored now."""
        done, day = 0, self._population.day
        while done < len(jobs) and (block := next(self._stored, None)) is not None:
            self._check_block(block, jobs[done])
            yield block.tuned
            done += 1
        for job, tuned in zip(jobs[done:], self.executor.run(jobs[done:]), strict=True):
            check_tuned(self.library, job, tuned, self.settings)
            self.store.append(day, job, _digest(job), self.library, tuned)
            yield tuned

    def _check_block(self, block: Block, job: Job) -> None:
        day = self._population.day
        if (block.day, block.job, block.asked) != (day, job.number, _digest(job)):
            raise UserError(
                f"{self.store.folder} holds job {block.job} of day {block.day}, where job {job.number} of day {day}"
                " was planned: the policy or the clock has changed; choose another --study"
            )


def _pieces(plan: Plan, program: NDArray[np.int64]) -> list[tuple[Method, NDArray[np.int64]]]:
    """Return the method and the places of the kernels of each job.

    Args:
      program: `(n,)` with which each kernel is measured; in methods that measure the kernels of a program together,
        these stay in one job.
    """
    found = []
    for method in map(Method, np.unique(plan.methods).tolist()):
        places = plan.kernels[plan.methods == method]
        cuts: Any = range(CHUNK, len(places), CHUNK)
        if method in TOGETHER:
            places = places[np.argsort(program[places], kind="stable")]
            first = np.flatnonzero(np.diff(program[places], prepend=-1))  # of each program
            cuts = first[1:][np.diff(first // CHUNK) > 0]
        found += [(method, own) for own in np.split(places, cuts)]
    return found


def _digest(job: Job) -> str:
    """Return a digest of what a job is to do."""
    keys = mixed(job.version, job.method, job.seed, job.kernels.astype(np.uint64))
    listed = b"" if job.candidates is None else digests(job.candidates.reshape(-1, job.candidates.shape[2])).tobytes()
    return hashlib.sha256(keys.tobytes() + listed).hexdigest()[:16]


DAYS, END = "days.csv", "end.json"
ORACLE = "oracle"
WARM = 10
"""Days that means leave out: a fleet begins without results."""
_BEFORE, _RECOVERED = 5, 0.9
"""Days before a release that its recovery is compared with, and the share of their savings that must be reached."""


def policies(registry: Registry, names: Sequence[str] | None = None) -> dict[str, type[Policy]]:
    """Return the classes of policies by id, by default of all that are known and quick, an oracle first.

    Raises:
      UserError: there is no such policy, or it cannot be imported.
    """
    known = registry.known("bbo_suite.fleet_policies", Policy)
    for name in names or ():
        if name not in known:
            raise UserError(f"there is no policy {name!r}.{did_you_mean(name, known)}")
    found = {name: known[name]() for name in names or sorted(known, key=lambda name: (name != ORACLE, name))}
    return {name: policy for name, policy in found.items() if names or policy.by_default}


@dataclass(frozen=True)
class FleetStudy:
    """Policies that are compared on one fleet.

    Attributes:
      folder: of the study; each run has a folder in it.
      library_id: names the library.
      policies: classes by id.
      budgets: chip-seconds a day.
      days: of each run.
      seeds: of the fleet's events and of the noise.
    """

    folder: Path
    library_id: str
    library: KernelLibrary
    settings: FleetSettings
    policies: Mapping[str, type[Policy]]
    budgets: Sequence[float]
    days: int
    seeds: Sequence[int]

    def __post_init__(self) -> None:
        if self.days < 1:
            raise UserError(f"days must be 1 or more, not {self.days}")
        if not self.seeds:
            raise UserError("repeats must be 1 or more, not 0")
        if min(self.seeds) < 0:
            raise UserError(f"seed must be 0 or more, not {min(self.seeds)}")
        for budget in self.budgets:
            if not budget > 0:
                raise UserError(f"a budget must be above 0 chip-seconds a day, not {budget}")

    def run(self, executor: Executor, shown: Progress = lambda text: None) -> Iterator[dict[str, Any]]:
        """Yield the measures of each run; runs that are stored are not measured again.

        Raises:
          UserError: as `Fleet` does, or a folder cannot be written.
        """
        done: list[dict[str, Any]] = []
        for seed in self.seeds:
            for budget in self.budgets:
                for name in sorted(self.policies, key=lambda name: not self.policies[name].is_oracle):
                    found = self._run(name, budget, seed, executor, shown)
                    done.append(found | regret(found, done))
                    yield done[-1]

    def _run(self, name: str, budget: float, seed: int, executor: Executor, shown: Progress) -> dict[str, Any]:
        made, folder = self.policies[name], self.folder / run_name(name, budget, seed)
        with error_boundary(f"policy {name}", "its constructor"):
            policy = made()
        version = "" if is_ours(made) else code_version(made)
        named = {"library": self.library_id, "kernels": self.library.fingerprint(), "days": self.days}
        run = {"policy": name, "policy_version": version, "budget": budget, "seed": seed}
        with ResultStore(folder, {**named, **run, **asdict(self.settings)}) as store:
            fleet = Fleet(self.library, self.settings, policy, name, budget, seed, store, executor, shown)
            days = []
            for day in fleet.run(self.days):
                days.append(day)
                shown(
                    f"{name}, {budget:g} chip-s a day, seed {seed}: day {day.day} of {self.days}, {day.live:,} kernels"
                    f" live, {day.tuned:,} tuned, {day.saved:.2%} saved"
                )
            return self._stored(folder, name, budget, seed, days)

    def _stored(self, folder: Path, name: str, budget: float, seed: int, days: list[DayResult]) -> dict[str, Any]:
        training = self.training if self.policies[name].predicts else 0.0
        head = {"policy": name, "budget": budget, "seed": seed, "budget_share": budget / self.settings.chip_seconds}
        found = head | summary(days, self.settings, training)
        with disk_errors(folder / DAYS), replacing(folder / DAYS) as unfinished:
            pd.DataFrame([day.flat() for day in days]).to_csv(unfinished, index=False, float_format="%.8g")
        write_json(folder / END, found)
        return found

    @property
    def training(self) -> float:
        """Chip-seconds a day for the labels that the learned model was trained on."""
        price = self.settings.compile + self.settings.measure
        return self.library.trained_on * price / self.settings.amortised


def regret(found: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the share of the oracle's savings that a run misses; None without a run of an oracle on the same fleet."""
    same = (o for o in others if o["policy"] == ORACLE and all(o[key] == found[key] for key in ("budget", "seed")))
    oracle = found if found["policy"] == ORACLE else next(same, None)
    return {"regret": 1 - found["saved"] / oracle["saved"] if oracle and oracle["saved"] else None}


def run_name(policy: str, budget: float, seed: int) -> str:
    """Return the name of a run's folder."""
    return f"{policy}-{budget:g}-{seed}".replace("/", "-").replace(":", "-")


def summary(days: Sequence[DayResult], settings: FleetSettings, training: float) -> dict[str, Any]:
    """Return the measures of a run.

    Args:
      training: chip-seconds a day for the training of a model, amortised.
    """
    late = days[WARM:] or days
    saved, potential = (float(np.mean([getattr(day, name) for day in late])) for name in ("saved", "potential"))
    cost = sum(day.cost for day in days) + training * len(days)
    total = sum(day.saved for day in days) * settings.chip_seconds
    return {
        "days": len(days),
        "saved": saved,
        "potential": potential,
        "saved_chip_seconds": total,
        "cost": cost,
        "training": training * len(days),
        "savings_over_cost": total / cost if cost else None,
        "kernels_a_day": float(np.mean([day.tuned for day in late])),
        "revalidated_a_day": float(np.mean([day.revalidated for day in late])),
        "lost": float(np.mean([day.lost for day in late])),
        "days_to_recover": recovery(days, settings),
        "live": days[-1].live,
        "by_method": {name: float(np.mean([day.by_method[name] for day in late])) for name in days[-1].by_method},
    }


def recovery(days: Sequence[DayResult], settings: FleetSettings) -> int | None:
    """Return the days after a release until nearly as much is saved as before; None if it is not reached."""
    before = [day.saved for day in days if settings.release - _BEFORE <= day.day < settings.release]
    if not settings.release or not before or np.mean(before) <= 0:
        return None
    after = (day.day for day in days if day.day >= settings.release and day.saved >= _RECOVERED * np.mean(before))
    first = next(after, None)
    return None if first is None else first - settings.release
