"""One run: ask, evaluate and tell until the budget is spent. Resuming is the same loop over stored rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress

from numpy.typing import NDArray

from ..core.problem import Problem
from ..core.strategy import Strategy, tell
from ..core.task import Strategies
from ..errors import UserError, error_boundary
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
    strategy_class: type[Strategy],
    folder: RunFolder,
    stopped: Callable[[], bool],
    keep_all: bool,
    max_seconds: float,
    strategies: Strategies | None,
) -> bool:
    """Return True if the run is complete, False if it was stopped."""
    owner = f"strategy {run.strategy}"
    with error_boundary(f"problem {run.problem}", "structure"):
        task = problem.task(strategy_class.uses_structure, strategies, strategy_class.uses_parts)
    with_parts = strategy_class.uses_parts and problem.tells_parts
    log, diagnostics = RunLog(problem, folder, keep_all, with_parts), Diagnostics(folder.path, owner)
    clock = time.perf_counter()
    with error_boundary(owner, "its constructor"):
        options = strategy_class.Options(**run.options)
        strategy = strategy_class(task, run.budget, run.generator(), options)
    while log.done < run.budget:
        if stopped():
            return False
        if log.new and log.seconds >= max_seconds:
            return log.end("time", stopped)
        wanted = min(run.batch, run.budget - log.done)
        with error_boundary(owner, "ask"):
            proposed = strategy.ask(wanted)
        strategy_seconds = time.perf_counter() - clock
        configs = checked(problem, proposed, wanted, owner)
        if not len(configs):
            return log.end("covered", stopped)
        values, parts = log.values(configs, strategy_seconds)
        clock = time.perf_counter()
        if log.done < run.budget:
            with error_boundary(owner, "tell"):
                tell(strategy, configs, values, parts)
            with error_boundary(owner, "diagnostics"):
                numbers = strategy.diagnostics()
            diagnostics.take(log.done, numbers)
    return log.end("budget", stopped)


def checked(problem: Problem, proposed: object, wanted: int, owner: str) -> NDArray:
    """Return a strategy's proposal as a batch of at most `wanted` rows of the space.

    Raises:
      UserError: it is not such a batch.
    """
    try:
        configs = problem.space.check(proposed)
        if len(configs) > wanted:
            raise ValueError(f"it returned {len(configs)} candidates when asked for {wanted}")
    except ValueError as error:
        raise UserError(f"{owner} broke its contract in ask: {error}") from None
    return configs
