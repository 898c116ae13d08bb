"""How jobs are carried out, and where: in this process, in several, or on a cluster, with the same results.

Candidates are compiled, then timed, stage by stage; the best few are timed again. Where a search strategy tunes a
kernel, a search of the kernel's own task takes the place of the stages.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate
from ..core.level import Level
from ..core.problem import Evaluations
from ..errors import UserError
from ..loop import search
from ..runs.cluster import check_address, cluster_error, connected
from ..runs.processes import in_processes
from .jobs import LISTED, RANKED, Job, Method, Tuned, digests, mixed, normal
from .library import KernelLibrary
from .settings import FleetSettings

if TYPE_CHECKING:
    from distributed import Client, Future


_BATCH = 16
"""Candidates of one `ask` of a search strategy."""


@dataclass(frozen=True)
class Candidates:
    """Compiled configurations of a job: those of kernel i are `starts[i]:starts[i + 1]`."""

    starts: NDArray[np.int64]
    settings: NDArray[np.float64]
    tried: NDArray[np.int64]


def compile_stage(library: KernelLibrary, job: Job, given: NDArray[np.float64], stage: int) -> Candidates:
    """Compile the candidates of a stage: what a worker without a chip can do.

    Args:
      given: `(n, w)` settings that the stages before have chosen.
    """
    if job.method in (Method.EXHAUSTIVE, Method.SHARED):
        starts, settings = library.compiled(job.version, job.kernels, given, stage)
        return Candidates(starts, settings, library.counts[job.kernels, stage])
    listed = library.picks(job.kernels, given, stage) if job.method in RANKED else job.candidates
    assert listed is not None
    n, m, w = listed.shape
    flat = listed.reshape(n * m, w)
    keys = digests(flat).reshape(n, m)
    first = ~np.tril(keys[:, :, None] == keys[:, None, :], -1).any(axis=2)  # not a repetition
    fits = first & np.isfinite(library.seconds(job.version, np.repeat(job.kernels, m), flat)).reshape(n, m)
    starts = np.concatenate([[0], np.cumsum(fits.sum(axis=1))])
    return Candidates(starts, flat[fits.reshape(-1)], first.sum(axis=1))


def stages(library: KernelLibrary, job: Job) -> int:
    """Return the number of stages of a job."""
    return 1 if job.method in LISTED else library.counts.shape[1]


@dataclass(frozen=True)
class Measured:
    """A job between two stages.

    Attributes:
      best: `(n, w)` the best settings so far, by one measurement.
      finalists: the best few of the last stage, which are measured again.
      compiled, measured: `(n,)` configurations so far.
    """

    best: NDArray[np.float64]
    finalists: Candidates | None
    compiled: NDArray[np.int64]
    measured: NDArray[np.int64]


def begun(library: KernelLibrary, job: Job) -> Measured:
    """Return a job before its first stage."""
    none = np.zeros(len(job.kernels), np.int64)
    return Measured(library.defaults(job.version, job.kernels), None, none, none)


def measure_stage(
    library: KernelLibrary, job: Job, settings: FleetSettings, before: Measured, candidates: Candidates
) -> Measured:
    """Time compiled candidates: what needs a chip."""
    counts = np.diff(candidates.starts)
    owner = np.repeat(np.arange(len(counts)), counts)
    times = _times(library, job, owner, candidates.settings, settings.noise, 0)
    order = np.lexsort((times, owner))
    few = order[np.arange(len(owner)) - candidates.starts[owner] < settings.finalists]
    starts = np.concatenate([[0], np.cumsum(np.minimum(counts, settings.finalists))])
    best, some = before.best.copy(), counts > 0
    best[some] = candidates.settings[few[starts[:-1][some]]]
    finalists = Candidates(starts, candidates.settings[few], np.diff(starts))
    return Measured(best, finalists, before.compiled + candidates.tried, before.measured + counts)


def finished(library: KernelLibrary, job: Job, settings: FleetSettings, before: Measured) -> Tuned:
    """Measure the finalists and the default again, and return the best if it saves more than the margin."""
    finalists, default = before.finalists, library.defaults(job.version, job.kernels)
    assert finalists is not None
    n, counts = len(job.kernels), np.diff(finalists.starts)
    owner = np.repeat(np.arange(n), counts)
    times = _times(library, job, owner, finalists.settings, settings.final_noise, 1)
    usual = _times(library, job, np.arange(n), default, settings.final_noise, 1)
    order, some = np.lexsort((times, owner)), counts > 0
    first = order[finalists.starts[:-1][some]]
    gain, chosen = np.zeros(n), default.copy()
    gain[some] = 1 - times[first] / usual[some]
    chosen[some] = finalists.settings[first]
    better = gain > settings.margin
    chosen, gain = np.where(better[:, None], chosen, default), np.where(better, gain, 0.0)
    measured = before.measured + counts + 1
    return Tuned(chosen, gain, before.compiled, measured, digests(chosen))


def tune(library: KernelLibrary, job: Job, settings: FleetSettings) -> Tuned:
    """Carry out a job in this process."""
    if job.method == Method.KNOWN:
        return _known(library, job)
    if job.method == Method.SEARCH:
        return finished(library, job, settings, _searched(library, job, settings))
    state = begun(library, job)
    for stage in range(stages(library, job)):
        state = measure_stage(library, job, settings, state, compile_stage(library, job, state.best, stage))
    return finished(library, job, settings, state)


def _searched(library: KernelLibrary, job: Job, settings: FleetSettings) -> Measured:
    """Return the state after a run of a search strategy on each kernel."""
    state, n = begun(library, job), len(job.kernels)
    best, compiled, counts, finalists = state.best.copy(), np.zeros(n, np.int64), np.zeros(n, np.int64), []
    for place in range(n):
        tried, seconds = _tried(library, job, settings, place)
        order = np.argsort(seconds, kind="stable")[: settings.finalists]
        finalists.append(tried[order[np.isfinite(seconds[order])]])
        compiled[place], counts[place] = len(tried), np.isfinite(seconds).sum()
    few = np.array([len(own) for own in finalists])
    starts = np.concatenate([[0], np.cumsum(few)])
    return Measured(best, Candidates(starts, np.concatenate(finalists), few), compiled, counts)


def _known(library: KernelLibrary, job: Job) -> Tuned:
    assert job.candidates is not None
    chosen = job.candidates[:, 0]
    usual = library.default_seconds(job.version)[job.kernels]
    gain = 1 - library.seconds(job.version, job.kernels, chosen) / usual
    ones = np.ones(len(gain), np.int64)
    return Tuned(chosen, gain, ones, 0 * ones, digests(chosen))


def _times(
    library: KernelLibrary, job: Job, owner: NDArray[np.int64], settings: NDArray[np.float64], noise: float, turn: int
) -> NDArray[np.float64]:
    """Return the noisy seconds of settings of the job's kernels; each kernel, setting and turn has noise of its own."""
    kernels = job.kernels[owner]
    keys = mixed(job.seed, library.content[kernels], job.version, turn, digests(settings))
    return library.seconds(job.version, kernels, settings) * np.exp(noise * normal(keys))


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


def _tried(
    library: KernelLibrary, job: Job, settings: FleetSettings, place: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the different `(n, w)` settings that a strategy tried on one kernel, and their `(n,)` measured seconds.

    Raises:
      UserError: there is no such strategy, or it raised an error.
    """
    kernel = int(job.kernels[place])
    problem, strategy = library.problem(job.version, kernel), library.strategies.strategy(settings.search)
    seed = [job.seed, int(library.content[kernel]), job.version]

    def measured(configs: NDArray, _: float) -> Evaluations:
        found = evaluate(problem, configs, strategy.level >= Level.PARTS)
        noise = settings.noise * normal(mixed(*seed, 2, *configs.T.astype(np.uint64)))
        return replace(found, values=found.values * np.exp(noise))

    batches = list(
        search(
            strategy,
            problem,
            settings.evaluations,
            np.random.default_rng(seed),
            batch=_BATCH,
            registry=library.strategies,
            answer=measured,
            owner=settings.search,
        )
    )
    configs = np.concatenate([problem.default_row()[None][:0], *(batch.configs for batch in batches)])
    seconds = np.concatenate([np.zeros(0), *(batch.values for batch in batches)])
    rows, first = np.unique(configs, axis=0, return_index=True)
    return library.settings_of(job.version, kernel, rows), seconds[first]


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
