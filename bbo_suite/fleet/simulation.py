"""A fleet day by day: programs come and go, a policy plans, jobs are carried out, results are stored and used."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError, error_boundary
from . import costs
from .beliefs import Beliefs
from .checking import check_plan, check_tuned
from .executors import Executor
from .jobs import TOGETHER, Job, Method, Tuned
from .ledger import DayResult
from .library import KernelLibrary, Progress
from .near import can_transfer, near_settings
from .noise import digests, mixed
from .optimum import Optimum, optimum
from .policy import Day, Plan, Policy, Truth
from .population import Population
from .results import Results
from .settings import FleetSettings
from .store import Block, ResultStore

CHUNK = 256
"""Kernels of a job at most."""


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
        self._library, self._settings, self._policy, self._name = library, settings, policy, name
        self._budget, self._seed, self._store, self._executor = budget, seed, store, executor
        self._shown = shown
        k, width = len(library.content), library.defaults(0, np.arange(1)).shape[1]
        self._population, self._results = Population(library, settings, seed), Results(library, width)
        self._beliefs = Beliefs(int(library.family.max()) + 1)
        self._picked = library.picks(np.arange(1), library.defaults(0, np.arange(1)), 0).shape[1]
        self._seen, self._left, self._jobs = np.zeros(k, np.int64), 0.0, 0
        self._stored: Iterator[Block] = store.blocks(library, width)

    def run(self, days: int) -> Iterator[DayResult]:
        """Yield what each day saved and cost.

        Raises:
          UserError: the policy breaks its contract, a worker's results are wrong, or the stored results are others'.
        """
        for _ in range(days):
            yield self._day()
            self._store.sync()
        if next(self._stored, None) is not None:
            raise UserError(f"{self._store.folder} holds results of more days; choose another --study")

    def _day(self) -> DayResult:
        population, results = self._population, self._results
        before = population.version
        population.next_day()
        if population.version != before:
            results.release()
        population.fetch(results.latest)
        usual = self._library.default_seconds(population.version)
        share = population.uses(usual)
        weight: NDArray[np.float64] = np.bincount(population.kernel, share, len(usual)).astype(np.float64)
        live = np.flatnonzero(np.bincount(population.kernel, minlength=len(usual)))
        new = live[self._seen[live] == 0]
        self._seen[new] = population.day
        best = optimum(self._library, population.version, self._shown) if len(live) else None
        assert best is not None
        saved = self._saved(share, weight, best)
        tuned, revalidated, cost = self._tune(live, new, weight, share, best)
        counts = (len(live), len(new), tuned, revalidated)
        return DayResult(population.day, population.version, *counts, cost, **saved)

    def _saved(self, share: NDArray[np.float64], weight: NDArray[np.float64], best: Optimum) -> dict[str, Any]:
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
            "potential": float(weight @ best.gain),
            "hits": float(hits),
            "by_method": {method.word: float(by_method[method]) for method in Method},
        }

    def _tune(
        self,
        live: NDArray[np.int64],
        new: NDArray[np.int64],
        weight: NDArray[np.float64],
        share: NDArray[np.float64],
        best: Optimum,
    ) -> tuple[int, int, float]:
        """Plan and carry out the day's jobs; return the kernels that were tuned and revalidated, and the cost."""
        predicting = self._settings.model * len(new) if self._policy.predicts else 0.0
        self._left += self._budget - predicting
        day = self._view(live, weight, share, best)
        with error_boundary(f"policy {self._name}", "plan"):
            plan = self._policy.plan(day)
        check_plan(plan, day, self._name)
        spent = predicting
        planned = self._jobs_of(plan, live, best)
        for (job, places), tuned in zip(planned, self._done([job for job, _ in planned]), strict=True):
            spent += self._take(job, tuned, day.program[places])
        self._left -= spent - predicting
        again = int((plan.methods == Method.REVALIDATE).sum())
        return len(plan.kernels) - again, again, spent

    def _view(
        self, live: NDArray[np.int64], weight: NDArray[np.float64], share: NDArray[np.float64], best: Optimum
    ) -> Day:
        library, results, settings = self._library, self._results, self._settings
        compiles = costs.compiled(library, settings, live, self._picked * library.counts.shape[1])
        prices = costs.highest(settings, compiles, self._policy.predicts)
        tunable = library.tunable(self._population.version)[live]
        prices[~tunable] = np.inf
        prices[~can_transfer(library, results, settings.near)[live], Method.NEAR] = np.inf
        prices[~(results.old_gain[live] > 0), Method.REVALIDATE] = np.inf
        if not self._policy.is_oracle:
            prices[:, Method.KNOWN] = np.inf
        return Day(
            self._population.day,
            max(0.0, self._left),
            weight[live] * settings.chip_seconds,
            self._seen[live],
            results.gain[live],
            results.old_gain[live],
            results.tried[live],
            library.family[live],
            library.predicted[live] if self._policy.predicts else None,
            prices,
            compiles,
            _heaviest(self._population.kernel, self._population.owner, share, len(weight))[live],
            self._beliefs,
            settings,
            self._truth(best.gain[live]),
        )

    def _truth(self, gain: NDArray[np.float64]) -> Any:  # noqa: ANN401 - a function
        def told() -> Truth:
            if not self._policy.is_oracle:
                raise UserError(f"policy {self._name} asks for the truth; only one with is_oracle = True may")
            return Truth(gain)

        return told

    def _jobs_of(self, plan: Plan, live: NDArray[np.int64], best: Optimum) -> list[tuple[Job, NDArray[np.int64]]]:
        """Return the jobs of a plan with the places of their kernels among the live ones; programs stay together."""
        found: list[tuple[Job, NDArray[np.int64]]] = []
        for method in map(Method, np.unique(plan.methods).tolist()):
            places = plan.kernels[plan.methods == method]
            size = max(1, len(places)) if method in TOGETHER else CHUNK
            for start in range(0, len(places), size):
                part = places[start : start + size]
                listed = self._candidates(method, live[part], best)
                version = self._population.version
                found.append((Job(self._jobs + len(found), version, method, live[part], listed, self._seed), part))
        self._jobs += len(found)
        return found

    def _candidates(self, method: Method, kernels: NDArray[np.int64], best: Optimum) -> NDArray[np.float64] | None:
        if method == Method.NEAR:
            return near_settings(self._library, self._results, kernels, self._settings.near)
        if method == Method.REVALIDATE:
            return self._results.old_settings[kernels][:, None]
        return best.settings[kernels][:, None] if method == Method.KNOWN else None

    def _done(self, jobs: Sequence[Job]) -> Iterator[Tuned]:
        """Yield the results of jobs: first those that are stored, then what is measured and stored now."""
        done = 0
        while done < len(jobs) and (block := next(self._stored, None)) is not None:
            self._check_block(block, jobs[done])
            yield block.tuned
            done += 1
        for job, tuned in zip(jobs[done:], self._executor.run(jobs[done:]), strict=True):
            check_tuned(self._library, job, tuned, self._settings)
            self._store.append(self._population.day, job, _asked(job), self._library, tuned)
            yield tuned

    def _check_block(self, block: Block, job: Job) -> None:
        if (block.day, block.job, block.asked) != (self._population.day, job.number, _asked(job)):
            raise UserError(
                f"{self._store.folder} holds job {block.job} of day {block.day}, where job {job.number} of day "
                f"{self._population.day} was planned: the policy or the clock has changed; choose another --study"
            )

    def _take(self, job: Job, tuned: Tuned, programs: NDArray[np.int64]) -> float:
        """Learn from a job's results and return their cost."""
        library, results, kernels = self._library, self._results, job.kernels
        known = (results.gain[kernels], np.maximum(results.gain[kernels], tuned.gain), results.old_gain[kernels])
        predicted = library.predicted[kernels] if self._policy.predicts else None
        self._beliefs.learn(job.method, library.family[kernels], *known, predicted)
        results.add(job, tuned)
        return costs.of_job(job, tuned, self._settings, programs, self._policy.predicts)


def _asked(job: Job) -> str:
    """Return a digest of what a job is to do."""
    keys = mixed(job.version, job.method, job.seed, job.kernels.astype(np.uint64))
    listed = b"" if job.candidates is None else digests(job.candidates.reshape(-1, job.candidates.shape[2])).tobytes()
    return hashlib.sha256(keys.tobytes() + listed).hexdigest()[:16]


def _heaviest(
    kernel: NDArray[np.int64], owner: NDArray[np.int64], share: NDArray[np.float64], kernels: int
) -> NDArray[np.int64]:
    """Return the `(kernels,)` programs that spend most on each kernel; 0 for a kernel that none uses."""
    order = np.lexsort((share, kernel))
    found = np.zeros(kernels, np.int64)
    found[kernel[order]] = owner[order]  # the last one counts
    return found
