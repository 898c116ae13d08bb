"""A stored run: a search whose costs come first from the stored rows, then from the problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..core.level import Level
from ..core.problem import Problem
from ..core.strategy import Strategy
from ..core.task import Strategies
from ..errors import UserError, error_boundary
from ..loop import search
from ..store.diagnostics import Diagnostics
from ..store.identity import Run
from ..store.remeasured import is_remeasured
from ..store.run_folder import RunFolder
from .run_log import RunLog


def run_loop(
    run: Run,
    problem: Problem,
    strategy: type[Strategy],
    folder: RunFolder,
    stopped: Callable[[], bool],
    keep_all: bool = False,
    max_seconds: float | None = None,
    strategies: Strategies | None = None,
) -> bool:
    """Spend the rest of the run's budget and return whether the run is complete.

    Stored rows are not evaluated again: the strategy must propose the same candidates, and receives the stored costs.
    The best candidates of a noisy problem are measured again in the end, also if the run had ended without that.

    Args:
      folder: already entered; holds the stored rows and takes the new ones.
      stopped: called before each batch, and each measurement in the end; True ends the run early, with all rows stored.
      keep_all: store every candidate, not only improvements.
      max_seconds: ends the run after the batch in which the sum of its seconds exceeds this; a longer limit, or none,
        continues such a run.
      strategies: for a strategy that runs others; None for those that are installed.

    Raises:
      UserError: the strategy or the problem breaks its contract, or the stored rows belong to another run.
    """
    limit = math.inf if max_seconds is None else max_seconds
    if folder.has_time(limit):
        folder.reopen()
    if folder.ended and (not problem.noisy or is_remeasured(folder.path)):
        return True
    try:
        return _loop(run, problem, strategy, folder, stopped, keep_all, limit, strategies)
    except UserError as error:
        with suppress(UserError):  # on a full disk this fails too
            folder.note(error.__cause__ or error)
        raise


def _loop(
    run: Run,
    problem: Problem,
    strategy: type[Strategy],
    folder: RunFolder,
    stopped: Callable[[], bool],
    keep_all: bool,
    max_seconds: float,
    registry: Strategies | None,
) -> bool:
    """Return True if the run is complete, False if it was stopped."""
    if stopped():
        return False
    log = RunLog(problem, folder, keep_all, strategy.level >= Level.PARTS and problem.tells_parts)
    owner = f"strategy {run.strategy}"
    diagnostics = Diagnostics(folder.path, owner)
    with error_boundary(owner, "its constructor"):
        options = strategy.Options(**run.options)
    settings: dict[str, Any] = {"batch": run.batch, "options": options, "registry": registry, "owner": run.strategy}
    for batch in search(strategy, problem, run.budget, run.generator(), answer=log.evaluations, **settings):
        if log.done == run.budget:
            return log.end("budget", stopped)
        diagnostics.take(log.done, batch.diagnostics)
        if stopped():
            return False
        if log.new and log.seconds >= max_seconds:
            return log.end("time", stopped)
    return log.end("covered", stopped)
