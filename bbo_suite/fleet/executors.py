"""Where jobs are carried out: in this process, in several, or on a cluster. The results do not depend on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..runs.cluster import check_address, cluster_error, connected
from ..runs.processes import in_processes
from .jobs import Job, Method, Tuned
from .library import KernelLibrary
from .measuring import Candidates, Measured, begun, compile_stage, finished, measure_stage, stages, tune
from .settings import FleetSettings

if TYPE_CHECKING:
    from distributed import Client, Future

Load = Callable[[], KernelLibrary]
"""Returns the library in any process: hashable, and small when it is sent."""
CHIP, COMPILE = "CHIP", "COMPILE"
"""Resources of the two pools of a cluster."""


class Executor(ABC):
    """Carries out jobs."""

    @abstractmethod
    def run(self, jobs: Sequence[Job]) -> Iterator[Tuned]:
        """Yield the results of jobs in the order of the jobs."""

    def close(self) -> None:
        """Free what the executor holds."""
        return


class InProcess(Executor):
    """One job after another in this process."""

    def __init__(self, library: KernelLibrary, settings: FleetSettings) -> None:
        self._library, self._settings = library, settings

    def run(self, jobs: Sequence[Job]) -> Iterator[Tuned]:
        """Yield the results of each job."""
        for job in jobs:
            yield tune(self._library, job, self._settings)


class Processes(Executor):
    """Several processes of this machine.

    Raises:
      UserError: the number is below 1.
    """

    def __init__(self, load: Load, settings: FleetSettings, processes: int) -> None:
        self._load, self._settings, self._processes = load, settings, processes
        if processes < 1:
            raise UserError(f"jobs must be 1 or more, not {processes}")

    def run(self, jobs: Sequence[Job]) -> Iterator[Tuned]:
        """Yield the results of each job; the most urgent ones start first."""
        calls = [(self._load, self._settings, job) for job in jobs]
        yield from in_processes(_tune, calls, self._processes, in_order=True)


class Cluster(Executor):
    """Two pools of workers of a Dask scheduler: some compile, and those with the resource `CHIP` measure.

    Each job is a chain of tasks: the candidates of a stage are compiled by the first pool and timed by the second. More
    urgent jobs have a higher priority in both.

    Raises:
      UserError: no scheduler answers, or a pool has no worker.
    """

    def __init__(self, load: Load, settings: FleetSettings, address: str) -> None:
        check_address(address)
        self._load, self._settings, self._address = load, settings, address
        self._connection = ExitStack()
        self._client: Client = self._connection.enter_context(connected(address))
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
            try:
                tuned = future.result()
            except Exception as error:
                raise cluster_error(error, self._address, f" at job {job.number}") from None
            yield tuned

    def _chain(self, job: Job, priority: int) -> Future:
        if job.method in (Method.KNOWN, Method.SEARCH):  # a search compiles and measures in turns
            return self._submit(COMPILE if job.method == Method.KNOWN else CHIP, priority, _tune, job)
        state: Any = None
        for stage in range(stages(_loaded(self._load), job)):
            candidates = self._submit(COMPILE, priority, _compile, job, state, stage)
            state = self._submit(CHIP, priority, _measure, job, state, candidates)
        return self._submit(CHIP, priority, _finish, job, state)

    def _submit(self, pool: str, priority: int, function: Callable[..., Any], *rest: Any) -> Future:  # noqa: ANN401 - its arguments
        arguments = (self._load, self._settings, *rest)
        return self._client.submit(function, *arguments, resources={pool: 1}, priority=priority, pure=False)

    def close(self) -> None:
        """Leave the cluster."""
        self._connection.close()


@lru_cache(maxsize=2)
def _loaded(load: Load) -> KernelLibrary:
    """Return the library of this process, which loads it once."""
    return load()


def _tune(load: Load, settings: FleetSettings, job: Job) -> Tuned:
    return tune(_loaded(load), job, settings)


def _compile(load: Load, settings: FleetSettings, job: Job, state: Measured | None, stage: int) -> Candidates:
    library = _loaded(load)
    return compile_stage(library, job, (state or begun(library, job)).best, stage)


def _measure(load: Load, settings: FleetSettings, job: Job, state: Measured | None, candidates: Candidates) -> Measured:
    library = _loaded(load)
    return measure_stage(library, job, settings, state or begun(library, job), candidates)


def _finish(load: Load, settings: FleetSettings, job: Job, state: Measured) -> Tuned:
    return finished(_loaded(load), job, settings, state)
