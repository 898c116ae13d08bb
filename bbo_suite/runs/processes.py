"""The runs of a plan, in this process or in several."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..store.run_folder import RunFolder
from ..store.summary import summarise
from .interrupt import ignored
from .loop import run_loop
from .study_plan import PlannedRun, StudyPlan


@dataclass(frozen=True)
class Outcome:
    """How a run ended: complete or stopped, with its summary, or with an error in one sentence."""

    path: Path
    complete: bool
    error: str = ""
    summary: dict[str, Any] | None = None


def run_planned(study: StudyPlan, planned: PlannedRun, stopped: Callable[[], bool], patience: float = 0) -> Outcome:
    """Do one run in this process, with one thread for linear algebra; errors come back as sentences.

    Args:
      patience: seconds to wait for another process that holds the run: its end may be on its way.
    """
    from threadpoolctl import threadpool_limits

    try:
        if stopped() and not planned.path.exists():  # what nobody began stays so
            return Outcome(planned.path, False)
        problem = study.registry.problem(planned.run.problem)
        problem.workers = study.workers
        strategy = study.registry.strategy(planned.run.strategy)
        folder = RunFolder(planned.path, planned.run.identity(), planned.facts, patience)
        with folder, threadpool_limits(1):
            limits = study.keep_all, study.max_seconds
            complete = run_loop(planned.run, problem, strategy, folder, stopped, *limits, study.registry)
        return Outcome(planned.path, complete, summary=summarise(planned.path))  # here, where it is done in parallel
    except UserError as error:
        return Outcome(planned.path, False, str(error))


def _run_in_worker(study: StudyPlan, planned: PlannedRun, stop: Path) -> Outcome:
    """Do one run in a worker process, where Ctrl-C is the parent's business; without a parent, end after the batch."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()
    outcome = run_planned(study, planned, lambda: stop.exists() or os.getppid() != parent)
    if os.getppid() != parent:  # nobody wants the outcome; idle, this process would keep its compilers for minutes
        os._exit(1)
    return outcome


def run_all(study: StudyPlan, plan: list[PlannedRun], jobs: int, stop: Path) -> Iterator[Outcome]:
    """Do the runs of a plan, `jobs` at a time, and yield each outcome as it comes.

    A file that appears at `stop` ends all runs after their current batch.
    """
    if jobs == 1 or len(plan) <= 1:
        yield from (run_planned(study, planned, stop.exists) for planned in plan)
        return
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=min(jobs, len(plan)), return_as="generator_unordered", batch_size=1, pre_dispatch="all")
    bare = dataclasses.replace(study, strategies={})  # a plugin's options are of a class that a worker cannot import
    try:
        with ignored():  # workers that are just starting would die of Ctrl-C; from then on they leave it to us
            outcomes = pool(delayed(_run_in_worker)(bare, planned, stop) for planned in plan)
        yield from outcomes
    except BrokenProcessPool:
        advice = "out of memory, or a crash in native code; stored rows are kept: run the same command again"
        raise UserError(f"a worker process died ({advice}, with --jobs 1 to see which run it is)") from None


def default_jobs(runs: int) -> int:
    """Return how many runs to do at a time when the user does not say: a core each."""
    return max(1, min(runs, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))
