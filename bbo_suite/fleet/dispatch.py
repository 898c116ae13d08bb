"""Turns a day's plan into jobs and has them carried out; what the store holds already is not measured again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from .checking import check_tuned
from .executors import Executor
from .jobs import TOGETHER, Job, Method, Tuned
from .library import KernelLibrary
from .near import near_settings
from .noise import digests, mixed
from .optimum import Optimum
from .policy import Plan
from .results import Results
from .settings import FleetSettings
from .store import Block, ResultStore

CHUNK = 256
"""Kernels of a job; more only where a program's kernels are measured together."""


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
            return near_settings(self._library, self._results, kernels, self._settings.near)
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
