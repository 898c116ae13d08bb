"""Where jobs are carried out: in this process, in several, or on a cluster. The results do not depend on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from .jobs import Job, Tuned
from .library import KernelLibrary
from .measuring import tune
from .settings import FleetSettings

Load = Callable[[], KernelLibrary]
"""Returns the library in any process: hashable, and small when it is sent."""


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
    """Several processes of this machine, by joblib."""

    def __init__(self, load: Load, settings: FleetSettings, jobs: int) -> None:
        from joblib import Parallel

        self._load, self._settings = load, settings
        self._pool = Parallel(n_jobs=jobs, return_as="generator", batch_size=1)

    def run(self, jobs: Sequence[Job]) -> Iterator[Tuned]:
        """Yield the results of each job; the most urgent ones start first."""
        from joblib import delayed

        yield from self._pool(delayed(tune_here)(self._load, job, self._settings) for job in jobs)


def tune_here(load: Load, job: Job, settings: FleetSettings) -> Tuned:
    """Carry out a job in this process, which loads the library once."""
    return tune(loaded(load), job, settings)


@lru_cache(maxsize=2)
def loaded(load: Load) -> KernelLibrary:
    """Return the library of this process."""
    return load()
