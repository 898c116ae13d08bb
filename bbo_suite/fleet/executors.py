"""Where jobs are carried out. The results do not depend on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from .jobs import Job, Tuned, tune
from .library import KernelLibrary
from .settings import FleetSettings


class Executor(ABC):
    """Carries out jobs."""

    @abstractmethod
    def run(self, jobs: Sequence[Job]) -> Iterator[Tuned]:
        """Yield the results of jobs in the order of the jobs, which begins with the most urgent."""

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
