"""A fleet day by day: programs come and go, a policy plans, jobs are carried out, results are stored and used."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from .executors import Executor
from .jobs import TOGETHER, Job, Method, Tuned, digests, mixed
from .library import KernelLibrary, Optimum, Progress, optimum
from .measuring import check_tuned
from .planning import Planner, cost_of_job
from .policy import GainEstimates, Plan, Policy
from .population import Population
from .results import Results, closest_settings
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


class Fleet:
    """One run: a policy on a fleet with a daily budget.

    Args:
      name: of the policy, for messages.
      budget: chip-seconds a day.
      store: already entered; results that it holds are not measured again.
      executor: carries out jobs.
      shown: progress.
    """

    def __init__(
        self,
        library: KernelLibrary,
        settings: FleetSettings,
        policy: Policy,
        name: str,
        budget: float,
        seed: int,
        store: ResultStore,
        executor: Executor,
        shown: Progress = lambda text: None,
    ) -> None:
        self._library, self._settings, self._policy = library, settings, policy
        self._budget, self._store, self._shown = budget, store, shown
        k, width = len(library.content), library.defaults(0, np.arange(1)).shape[1]
        self._population, self._results = Population(library, settings, seed), Results(library, width)
        self._gain_estimates = GainEstimates(int(library.family.max()) + 1)
        self._planner = Planner(library, settings, policy, name, self._gain_estimates)
        self._dispatcher = Dispatcher(library, settings, store, executor, self._results, seed)
        self._seen, self._left = np.zeros(k, np.int64), 0.0

    def run(self, days: int) -> Iterator[DayResult]:
        """Yield what each day saved and cost.

        Raises:
          UserError: the policy breaks its contract, a worker's results are wrong, or the stored results are others'.
        """
        for _ in range(days):
            yield self._day()
            self._store.sync()
        self._dispatcher.check_end()

    def _day(self) -> DayResult:
        population, results = self._population, self._results
        before = population.version
        population.next_day()
        if population.version != before:
            results.release()
        population.fetch(results.latest)
        usual = self._library.default_seconds(population.version)
        share = population.uses(usual)
        live = np.flatnonzero(np.bincount(population.kernel, minlength=len(usual)))
        new = live[self._seen[live] == 0]
        self._seen[new] = population.day
        best = optimum(self._library, population.version, self._shown)
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
        spent = self._settings.model * new if self._policy.predicts else 0.0
        self._left += self._budget - spent
        population = self._population
        day = self._planner.day(population, self._results, self._left, live, share, self._seen, best.gain)
        plan = self._planner.plan(day)
        jobs = self._dispatcher.carry_out(population.day, population.version, plan, live, day.program, best)
        costs = [self._take(job, tuned, programs) for job, programs, tuned in jobs]
        self._left -= sum(costs)
        again = int((plan.methods == Method.REVALIDATE).sum())
        return len(plan.kernels) - again, again, spent + sum(costs)

    def _take(self, job: Job, tuned: Tuned, programs: NDArray[np.int64]) -> float:
        """Learn from a job's results and return their cost."""
        library, results, kernels = self._library, self._results, job.kernels
        known = (results.gain[kernels], np.maximum(results.gain[kernels], tuned.gain), results.old_gain[kernels])
        predicted = library.predicted[kernels] if self._policy.predicts else None
        self._gain_estimates.learn(job.method, library.family[kernels], *known, predicted)
        results.add(job, tuned)
        return cost_of_job(job, tuned, self._settings, programs, self._policy.predicts)


class Dispatcher:
    """Carries out plans.

    Args:
      store: already entered.
      results: what is known of each kernel.
      seed: of the noise.
    """

    def __init__(
        self,
        library: KernelLibrary,
        settings: FleetSettings,
        store: ResultStore,
        executor: Executor,
        results: Results,
        seed: int,
    ) -> None:
        self._library, self._settings, self._store = library, settings, store
        self._executor, self._results, self._seed = executor, results, seed
        self._stored: Iterator[Block] = store.blocks(library, results.settings.shape[1])
        self._jobs = 0

    def carry_out(
        self, day: int, version: int, plan: Plan, live: NDArray[np.int64], program: NDArray[np.int64], best: Optimum
    ) -> Iterator[tuple[Job, NDArray[np.int64], Tuned]]:
        """Yield each job of a plan with the programs of its kernels and the results.

        Args:
          live: `(n,)` the live kernels, which the plan numbers.
          program: `(n,)` with which each is measured.
        """
        jobs: list[Job] = []
        programs: list[NDArray[np.int64]] = []
        for method in map(Method, np.unique(plan.methods).tolist()):
            for part in _pieces(plan.kernels[plan.methods == method], method, program):
                listed = self._candidates(method, live[part], best)
                jobs.append(Job(self._jobs + len(jobs), version, method, live[part], listed, self._seed))
                programs.append(program[part])
        self._jobs += len(jobs)
        yield from zip(jobs, programs, self._done(day, jobs), strict=True)

    def check_end(self) -> None:
        """Check that the store holds nothing more.

        Raises:
          UserError: it does.
        """
        if next(self._stored, None) is not None:
            raise UserError(f"{self._store.folder} holds results of more days; choose another --study")

    def _candidates(self, method: Method, kernels: NDArray[np.int64], best: Optimum) -> NDArray[np.float64] | None:
        if method == Method.NEAR:
            return closest_settings(self._library, self._results, kernels, self._settings.near)
        if method == Method.REVALIDATE:
            return self._results.old_settings[kernels][:, None]
        return best.settings[kernels][:, None] if method == Method.KNOWN else None

    def _done(self, day: int, jobs: Sequence[Job]) -> Iterator[Tuned]:
        """Yield the results of jobs: first those that are stored, then what is measured and stored now."""
        done = 0
        while done < len(jobs) and (block := next(self._stored, None)) is not None:
            self._check_block(block, day, jobs[done])
            yield block.tuned
            done += 1
        for job, tuned in zip(jobs[done:], self._executor.run(jobs[done:]), strict=True):
            check_tuned(self._library, job, tuned, self._settings)
            self._store.append(day, job, _asked(job), self._library, tuned)
            yield tuned

    def _check_block(self, block: Block, day: int, job: Job) -> None:
        if (block.day, block.job, block.asked) != (day, job.number, _asked(job)):
            raise UserError(
                f"{self._store.folder} holds job {block.job} of day {block.day}, where job {job.number} of day {day}"
                " was planned: the policy or the clock has changed; choose another --study"
            )


def _pieces(places: NDArray[np.int64], method: Method, program: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the kernels of each job; kernels of a program that are measured together stay in one."""
    if method not in TOGETHER:
        return np.split(places, range(CHUNK, len(places), CHUNK)) if len(places) else []
    places = places[np.argsort(program[places], kind="stable")]
    first = np.flatnonzero(np.diff(program[places], prepend=-1))  # of each program
    piece = first // CHUNK
    return np.split(places, first[1:][np.diff(piece) > 0])


def _asked(job: Job) -> str:
    """Return a digest of what a job is to do."""
    keys = mixed(job.version, job.method, job.seed, job.kernels.astype(np.uint64))
    listed = b"" if job.candidates is None else digests(job.candidates.reshape(-1, job.candidates.shape[2])).tobytes()
    return hashlib.sha256(keys.tobytes() + listed).hexdigest()[:16]
