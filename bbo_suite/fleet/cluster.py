"""Jobs on a Dask cluster with two pools: workers that compile, and workers with chips that measure.

A worker of the second kind has the resource `CHIP`. Each job is a chain of tasks: the candidates of a stage are
compiled by the first pool and timed by the second. More urgent jobs have a higher priority in both.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UserError, one_line
from .executors import Executor, Load, loaded
from .jobs import Job, Method, Tuned
from .measuring import Candidates, Measured, begun, compile_stage, finished, measure_stage, stages, tune
from .settings import FleetSettings

if TYPE_CHECKING:
    from distributed import Client, Future

CHIP, COMPILE = "CHIP", "COMPILE"
"""Resources of the two pools."""
_LOGS = ("distributed", "distributed.client", "distributed.scheduler", "tornado.application")


class Cluster(Executor):
    """The workers of a Dask scheduler that answers.

    Raises:
      UserError: a pool has no worker.
    """

    def __init__(self, load: Load, settings: FleetSettings, address: str) -> None:
        from distributed import Client

        for name in _LOGS:  # what matters is reported as an error
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._load, self._settings, self._address = load, settings, address
        self._client: Client = Client(address, set_as_default=False)
        self._check_pools()

    def _check_pools(self) -> None:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        for pool in (CHIP, COMPILE):
            if not any(pool in worker["resources"] for worker in workers):
                self.close()
                advice = f"start some by `dask worker {self._address} --nthreads 1 --resources '{pool}=1'`"
                raise UserError(f"no worker at {self._address} has the resource {pool}; {advice}")

    def run(self, jobs: Sequence[Job]) -> Iterator[Tuned]:
        """Yield the results of each job. A task whose worker dies runs again on another."""
        futures = [self._chain(job, len(jobs) - place) for place, job in enumerate(jobs)]
        for job, future in zip(jobs, futures, strict=True):
            yield self._result(job, future)

    def _chain(self, job: Job, priority: int) -> Future:
        if job.method in (Method.KNOWN, Method.SEARCH):  # a search compiles and measures in turns
            return self._submit(COMPILE if job.method == Method.KNOWN else CHIP, priority, _whole, job)
        state: Any = None
        for stage in range(stages(loaded(self._load), job)):
            candidates = self._submit(COMPILE, priority, _compile, job, state, stage)
            state = self._submit(CHIP, priority, _measure, job, state, candidates)
        return self._submit(CHIP, priority, _finish, job, state)

    def _submit(self, pool: str, priority: int, *call: Any) -> Future:  # noqa: ANN401 - a function and its arguments
        function, *rest = call
        arguments = (self._load, self._settings, *rest)
        return self._client.submit(function, *arguments, resources={pool: 1}, priority=priority, pure=False)

    def _result(self, job: Job, future: Future) -> Tuned:
        from concurrent.futures import CancelledError

        try:
            return future.result()
        except UserError:
            raise
        except CancelledError:
            advice = "results are kept: run the same command again"
            raise UserError(f"the connection to the Dask scheduler at {self._address} was lost; {advice}") from None
        except Exception as error:
            advice = "workers need the same Python and packages as this process; results are kept: run it again"
            what = f"{type(error).__name__}: {one_line(error)}"
            raise UserError(f"a worker failed at job {job.number} ({what}); {advice}") from None

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close()


def _whole(load: Load, settings: FleetSettings, job: Job) -> Tuned:
    return tune(loaded(load), job, settings)


def _compile(load: Load, settings: FleetSettings, job: Job, state: Measured | None, stage: int) -> Candidates:
    library = loaded(load)
    return compile_stage(library, job, (state or begun(library, job)).best, stage)


def _measure(load: Load, settings: FleetSettings, job: Job, state: Measured | None, candidates: Candidates) -> Measured:
    library = loaded(load)
    return measure_stage(library, job, settings, state or begun(library, job), candidates)


def _finish(load: Load, settings: FleetSettings, job: Job, state: Measured) -> Tuned:
    return finished(loaded(load), job, settings, state)
