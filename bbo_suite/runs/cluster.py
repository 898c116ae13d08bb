"""Run a study on a Dask cluster, whose workers may be on any machines that share the results folder."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.libraries import require
from ..errors import UserError, one_line
from ..store.folders import STUDY
from .processes import Outcome, run_planned
from .study_plan import PlannedRun, StudyPlan, machine_facts

if TYPE_CHECKING:
    from distributed import Client, Future

ANSWER_SECONDS, LOCK_SECONDS = 5, 10.0
_ONE_RUN = threading.Lock()
_LOGS = ("distributed", "distributed.client", "distributed.gc", "tornado.application")
"""Loggers to which Dask gives their own levels."""


def check_address(address: str) -> None:
    """Check that Dask is installed and that a scheduler answers.

    Raises:
      UserError: Dask is not installed, or no scheduler answers.
    """
    require("distributed", "a cluster", "bbo_suite[cluster]")
    try:
        with ThreadPoolExecutor(1) as thread:  # the caller may already run an event loop, as notebooks do
            what = thread.submit(asyncio.run, _identity(address)).result()
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        why = one_line(error) if str(error) else f"no answer within {ANSWER_SECONDS} s"
        advice = "`dask scheduler` starts one and prints its address, as tcp://host:8786"
        raise UserError(f"no Dask scheduler answers at {address!r} ({why}); {advice}") from None
    if what != "Scheduler":
        raise UserError(f"{address} is a Dask {what.lower()}; give the address of the scheduler")


async def _identity(address: str) -> str:
    from distributed import rpc

    async with asyncio.timeout(ANSWER_SECONDS), rpc(address) as remote:
        return (await remote.identity())["type"]


def run_on_cluster(address: str, study: StudyPlan, plan: list[PlannedRun], stop: Path) -> Iterator[Outcome]:
    """Run a plan on a cluster and yield each outcome as soon as it is known.

    A run whose worker dies restarts on another worker, which replays the stored rows. If several workers die during the
    same run, this run fails and the others continue. (joblib's Dask backend would stop the study, so it is not used.)

    Args:
      stop: runs end after their current evaluations when this file appears or its folder is gone. All workers must see
        it.

    Raises:
      UserError: the connection to the scheduler is lost, or its workers have another environment.
    """
    bare = dataclasses.replace(study, strategies={})  # workers may not be able to import their classes
    with connected(address) as client:
        from distributed import as_completed

        _check_workers(client, address)
        here = Path.cwd()
        planned = {client.submit(_run_on_worker, bare, run, stop, here, pure=False): run for run in plan}
        for future in as_completed(planned, loop=client.loop):
            yield _outcome(future, planned.pop(future), address)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Yield a client of a scheduler that answers."""
    from distributed import Client

    for name in _LOGS:  # everything important is reported as an error or an outcome
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with Client(address, set_as_default=False) as client:
        yield client


def _check_workers(client: Client, address: str) -> None:
    """Refuse workers with several threads; print a hint if there is no worker yet."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    for worker, info in workers.items():
        if info["nthreads"] > 1:
            advice = f"start workers by `dask worker {address} --nthreads 1 --nworkers N`"
            raise UserError(f"worker {worker} has {info['nthreads']} threads, but each run needs a process: {advice}")
    if not workers:
        print(f"no worker yet; start some by `dask worker {address} --nthreads 1`", file=sys.stderr, flush=True)


def _outcome(future: Future, planned: PlannedRun, address: str) -> Outcome:
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker:
        advice = "out of memory, or a crash in native code; stored rows are kept"
        return Outcome(planned.path, False, f"{planned.name.label}: every worker that tried it died ({advice})")
    except Exception as error:
        raise cluster_error(error, address) from None


def cluster_error(error: Exception, address: str, job: str = "") -> UserError:
    """Return what ended a task on a cluster as an error of one sentence.

    Args:
      job: what the worker did, such as " at job 3".
    """
    from distributed.comm import CommClosedError

    if isinstance(error, UserError):
        return error
    if isinstance(error, CancelledError | CommClosedError):
        advice = "stored rows are kept: run the same command again"
        return UserError(f"the connection to the Dask scheduler at {address} was lost; {advice}")
    advice = "workers need the same Python and packages as this process, including bbo_suite"
    return UserError(f"a worker failed{job} ({type(error).__name__}: {one_line(error)}); {advice}")


def _run_on_worker(study: StudyPlan, planned: PlannedRun, stop: Path, folder: Path) -> Outcome:
    """Execute one run on a worker, in the working directory of the command, so that relative paths stay valid."""
    _enter(folder, study)
    noted = dataclasses.replace(planned, facts=planned.facts | machine_facts())
    with _ONE_RUN:  # runs must not share a problem
        return run_planned(study, noted, lambda: stop.exists() or not stop.parent.exists(), LOCK_SECONDS)


def _enter(folder: Path, study: StudyPlan) -> None:
    try:
        os.chdir(folder)
        (study.path / STUDY).stat()
    except OSError:
        advice = "a cluster needs one file system that all of its workers and this machine share"
        raise UserError(f"the worker on {socket.gethostname()} does not see {folder / study.path}; {advice}") from None
