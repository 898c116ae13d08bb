"""The runs of a study on a Dask cluster: on workers on any machines that see the results' folder."""

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
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError, one_line
from ..store.folders import STUDY
from .machine import facts
from .processes import Outcome, run_planned
from .study_plan import PlannedRun, StudyPlan

if TYPE_CHECKING:
    from distributed import Client, Future

ANSWER_SECONDS, LOCK_SECONDS = 5, 10.0
_ONE_RUN = threading.Lock()
_LOGS = ("distributed", "distributed.client", "distributed.gc", "tornado.application")
"""To which Dask gives levels of their own."""


def check_address(address: str) -> None:
    """See at once that Dask is installed and that a scheduler answers.

    Raises:
      UserError: not so.
    """
    if find_spec("distributed") is None:
        raise UserError('a cluster needs Dask; install it by `pip install "bbo_suite[cluster]"`')
    try:
        with ThreadPoolExecutor(1) as thread:  # the caller may have an event loop of its own, as notebooks do
            what = thread.submit(asyncio.run, _identity(address)).result()
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        why = one_line(error) if str(error) else f"nothing that speaks its language within {ANSWER_SECONDS} s"
        advice = "`dask scheduler` starts one and prints its address, as tcp://host:8786"
        raise UserError(f"no Dask scheduler answers at {address!r} ({why}); {advice}") from None
    if what != "Scheduler":
        raise UserError(f"{address} is a Dask {what.lower()}; give the address of the scheduler")


async def _identity(address: str) -> str:
    from distributed import rpc

    async with asyncio.timeout(ANSWER_SECONDS), rpc(address) as remote:
        return (await remote.identity())["type"]


def run_on_cluster(address: str, study: StudyPlan, plan: list[PlannedRun], stop: Path) -> Iterator[Outcome]:
    """Do the runs of a plan on a cluster and yield each outcome as it comes.

    A run whose worker dies is begun again on another, which replays what is stored. One that brings down several is
    an error, and the others go on: joblib's backend would give up the study, so this speaks to Dask itself.

    Args:
      stop: when it appears, or its folder is gone, runs end after their batch; all workers must see it.

    Raises:
      UserError: the scheduler went away, or its workers differ from here.
    """
    bare = dataclasses.replace(study, strategies={})  # a plugin's options are of a class that a worker cannot import
    with _connected(address) as client:
        from distributed import as_completed

        here = Path.cwd()
        planned = {client.submit(_run_on_worker, bare, run, stop, here, pure=False): run for run in plan}
        for future in as_completed(planned, loop=client.loop):
            yield _outcome(future, planned.pop(future), address)


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    from distributed import Client

    for name in _LOGS:  # what matters comes as an error or an outcome
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with Client(address, set_as_default=False) as client:
        _check_workers(client, address)
        yield client


def _check_workers(client: Client, address: str) -> None:
    """Refuse workers that would do several runs in one process, and say so if there is none to wait for."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    for worker, its in workers.items():
        if its["nthreads"] > 1:
            advice = f"start workers by `dask worker {address} --nthreads 1 --nworkers N`"
            raise UserError(f"worker {worker} has {its['nthreads']} threads, but a run is a process: {advice}")
    if not workers:
        print(f"no worker yet; start some by `dask worker {address} --nthreads 1`", file=sys.stderr, flush=True)


def _outcome(future: Future, planned: PlannedRun, address: str) -> Outcome:
    from distributed import KilledWorker

    try:
        return future.result()
    except UserError:
        raise
    except KilledWorker:
        advice = "out of memory, or a crash in native code; stored rows are kept"
        return Outcome(planned.path, False, f"{planned.name.label}: every worker that tried it died ({advice})")
    except CancelledError:
        advice = "stored rows are kept: run the same command again"
        raise UserError(f"the Dask scheduler at {address} went away; {advice}") from None
    except Exception as error:
        advice = "workers need the same Python and packages as here, bbo_suite among them"
        raise UserError(f"a worker cannot do a run ({type(error).__name__}: {one_line(error)}); {advice}") from None


def _run_on_worker(study: StudyPlan, planned: PlannedRun, stop: Path, folder: Path) -> Outcome:
    """Do one run on a worker, from the folder in which the command was given, so that every path means the same."""
    _enter(folder, study)
    noted = dataclasses.replace(planned, facts=planned.facts | facts())
    with _ONE_RUN:  # a problem is one run's at a time
        return run_planned(study, noted, lambda: stop.exists() or not stop.parent.exists(), LOCK_SECONDS)


def _enter(folder: Path, study: StudyPlan) -> None:
    try:
        os.chdir(folder)
        (study.path / STUDY).stat()
    except OSError:
        advice = "a cluster needs one file system that all of its workers and this machine share"
        raise UserError(f"the worker on {socket.gethostname()} does not see {folder / study.path}; {advice}") from None
