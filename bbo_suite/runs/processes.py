"""Run a plan in this process or in several."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..core.problem import set_fact
from ..errors import UserError
from ..store.folders import note_death
from ..store.results import summarise
from ..store.run_folder import RunFolder
from .interrupt import CAUSES, ignored, making
from .loop import run_loop
from .study_plan import PlannedRun, StudyPlan

_WATCH_SECONDS = 0.5
_SAFE_PATH = "PYTHONSAFEPATH"


class WorkerDied(UserError):
    """A process ended while it did a part of the work."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. It is complete or stopped, with a summary, or failed, with an error of one sentence."""

    path: Path
    complete: bool
    error: str = ""
    summary: dict[str, Any] | None = None


def run_planned(study: StudyPlan, planned: PlannedRun, stopped: Callable[[], bool], lock_timeout: float = 0) -> Outcome:
    """Run one planned run in this process, with one thread for linear algebra; errors are returned as sentences.

    Args:
      lock_timeout: seconds to wait for another process that holds the run and may be about to end.
    """
    from threadpoolctl import threadpool_limits

    try:
        if stopped() and not planned.path.exists():  # do not start a run that has not begun
            return Outcome(planned.path, False)
        problem = study.registry.problem(planned.run.problem)
        set_fact(problem, "workers", study.workers)
        strategy = study.registry.strategy(planned.run.strategy)
        folder = RunFolder(planned.path, planned.run.identity(), planned.facts, lock_timeout)
        with folder, threadpool_limits(1):
            limits = study.keep_all, study.max_seconds
            complete = run_loop(planned.run, problem, strategy, folder, stopped, *limits, study.registry, study.until)
        return Outcome(planned.path, complete, summary=summarise(planned.path))  # here, so in parallel
    except UserError as error:
        return Outcome(planned.path, False, str(error))


def in_processes(
    function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], jobs: int, in_order: bool = False
) -> Iterator[Any]:
    """Call a function in `jobs` other processes, and yield each result as soon as it is known, or in the given order.

    Raises:
      WorkerDied: a process died.
    """
    from joblib import Parallel, delayed

    how = "generator" if in_order else "generator_unordered"
    pool = Parallel(n_jobs=jobs, return_as=how, batch_size=1, pre_dispatch="all")
    try:
        with ignored(), _own_libraries():  # signals would kill workers that are just starting; later they ignore them
            results = pool(delayed(_call_in_worker)(os.getpid(), function, *each) for each in arguments)
        with _killed_without_a_word(results):
            for result in results:  # noqa: UP028 - `yield from` would close the pool before the block ends
                yield result
    except BrokenProcessPool:
        raise WorkerDied(f"a worker process died ({CAUSES}); run the same command again, with --jobs 1") from None


@contextmanager
def _killed_without_a_word(results: Generator[Any]) -> Iterator[None]:
    """Close a pool's results in the end, without a warning that what still runs is cancelled.

    Nor is there a traceback of the thread that manages the pool: it may miss what is gone once the pool is killed.
    """
    before = threading.excepthook

    def tell(error: threading.ExceptHookArgs) -> None:
        if not getattr(getattr(error.thread, "executor_flags", None), "kill_workers", False):  # of joblib's thread
            before(error)

    threading.excepthook = tell
    try:
        yield
    finally:
        with warnings.catch_warnings(action="ignore"):
            results.close()
        threading.excepthook = before


@contextmanager
def _own_libraries() -> Iterator[None]:
    """Start processes that find libraries first: a file such as `json.py` in this folder would end them at once."""
    ours = os.environ.setdefault(_SAFE_PATH, __name__) == __name__
    try:
        yield
    finally:
        if ours:
            del os.environ[_SAFE_PATH]


def _call_in_worker(parent: int, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401 - of any function
    """Call a function in a worker process. Only the parent handles Ctrl-C and SIGTERM; the worker ends with it."""
    _end_with(parent)
    if os.environ.get(_SAFE_PATH) == __name__:
        del os.environ[_SAFE_PATH]  # programs that are built and run find what lies beside them
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    return function(*arguments)


@cache
def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even during a batch: resuming evaluates that batch again.

    It ends also when its own work is done, even if a plugin has left a thread running, for which Python would wait.
    """

    def watch() -> None:
        while os.getppid() == parent and threading.main_thread().is_alive():
            time.sleep(_WATCH_SECONDS)
        time.sleep(_WATCH_SECONDS)  # to end by itself
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_all(study: StudyPlan, plan: list[PlannedRun], jobs: int, stop: Path) -> Iterator[Outcome]:
    """Run a plan, `jobs` runs at a time, and yield each outcome as soon as it is known.

    When a file appears at `stop`, all runs end after their current evaluations.
    """
    if jobs == 1 or len(plan) <= 1:
        for planned in plan:
            with making(planned.path) as died:
                yield _lost(planned, died) if died else run_planned(study, planned, stop.exists)
        return
    bare = dataclasses.replace(study, strategies={})  # workers may not be able to import their classes
    left = {planned.path: planned for planned in plan}
    while left:
        try:
            for outcome in _elsewhere(bare, list(left.values()), jobs, stop):
                del left[outcome.path]
                yield outcome
        except WorkerDied:
            for planned in list(left.values())[:jobs]:  # they are begun in this order
                yield _alone(bare, left.pop(planned.path), stop)


def _elsewhere(study: StudyPlan, plan: list[PlannedRun], jobs: int, stop: Path) -> Iterator[Outcome]:
    """Make runs in other processes, even a single one."""
    yield from in_processes(_run_until, [(study, planned, stop) for planned in plan], max(2, min(jobs, len(plan))))


def _alone(study: StudyPlan, planned: PlannedRun, stop: Path) -> Outcome:
    """Make a run that may have ended its process, or that lost it because another run did."""
    try:
        return next(_elsewhere(study, [planned], 1, stop))
    except WorkerDied:
        note_death(planned.path, died := f"its process ended: {CAUSES}")
        return _lost(planned, died)


def _lost(planned: PlannedRun, died: str) -> Outcome:
    return Outcome(planned.path, False, f"{planned.name.label}: {died}; its rows are kept")


def _run_until(study: StudyPlan, planned: PlannedRun, stop: Path) -> Outcome:
    return run_planned(study, planned, stop.exists)


def default_jobs(runs: int, timed: Sequence[str]) -> int:
    """Return the default number of runs at a time: one for each core, but no more than there are runs.

    Args:
      timed: the problems whose costs are times, which other runs change: then it is one.
    """
    if timed:
        return 1
    return max(1, min(runs, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))


def one_at_a_time(timed: Sequence[str]) -> str:
    """Return why a study with these problems makes one run at a time."""
    are = "are times, which other runs change"
    return f"one run at a time, because costs of {', '.join(timed)} {are}; choose --jobs if this machine can bear more"
