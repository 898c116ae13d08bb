"""A fleet day by day: programs come and go, a policy plans, jobs are carried out, results are stored and used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import error_boundary
from .beliefs import Beliefs
from .checking import check_plan
from .costs import of_job
from .dispatch import Dispatcher
from .executors import Executor
from .jobs import Job, Method, Tuned
from .ledger import DayResult
from .library import KernelLibrary, Progress
from .optimum import Optimum, optimum
from .policy import Policy
from .population import Population
from .results import Results
from .settings import FleetSettings
from .store import ResultStore
from .view import Viewer


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
        self._budget, self._store, self._shown = budget, store, shown
        k, width = len(library.content), library.defaults(0, np.arange(1)).shape[1]
        self._population, self._results = Population(library, settings, seed), Results(library, width)
        self._beliefs = Beliefs(int(library.family.max()) + 1)
        self._viewer = Viewer(library, settings, policy, name, self._beliefs)
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
        day = self._viewer.day(population, self._results, self._left, live, share, self._seen, best.gain)
        with error_boundary(f"policy {self._name}", "plan"):
            plan = self._policy.plan(day)
        check_plan(plan, day, self._name)
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
        self._beliefs.learn(job.method, library.family[kernels], *known, predicted)
        results.add(job, tuned)
        return of_job(job, tuned, self._settings, programs, self._policy.predicts)
