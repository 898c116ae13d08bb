"""Replay of a run: its strategy proposes again, receives the stored values, and its proposals are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.problem import Problem
from ..core.strategy import Strategy, tell
from ..core.task import Strategies
from ..errors import UserError, error_boundary
from ..runs.loop import checked
from ..store.parts_log import PartsLog
from ..store.stored_run import StoredRun


def replay(
    run: StoredRun, problem: Problem, strategy_class: type[Strategy], most: int, strategies: Strategies
) -> NDArray:
    """Return `(k, d)` the candidates of the first rows, `most` of them or up to a batch more; nothing is evaluated.

    Args:
      strategies: for a strategy that runs others.

    Raises:
      UserError: the strategy fails, or proposes other candidates than the stored ones.
    """
    owner, own = f"strategy {run.identity.strategy}", run.identity
    with error_boundary(f"problem {own.problem}", "structure"):
        task = problem.task(strategy_class.uses_structure, strategies, strategy_class.uses_parts)
    with error_boundary(owner, "its constructor"):
        strategy = strategy_class(task, own.budget, own.generator(), strategy_class.Options(**own.options))
    log = PartsLog(run.path) if strategy_class.uses_parts and problem.tells_parts else None
    done, batches = 0, [np.empty((0, len(problem.space)), problem.space.dtype)]
    while done < min(most, len(run.rows)):
        wanted = min(own.batch, own.budget - done)
        with error_boundary(owner, "ask"):
            proposed = strategy.ask(wanted)
        configs = checked(problem, proposed, wanted, owner)
        known = run.rows[done : done + len(configs)]
        _compare(configs, run, problem, done)
        batches.append(configs[: len(known)])
        done += len(configs)
        if done < len(run.rows):  # otherwise the replay ends, and the last batch may be incomplete
            parts = log.replay(known[0].evaluation, len(known)) if log else None
            with error_boundary(owner, "tell"):
                tell(strategy, configs, np.array([row.value for row in known]), parts)
                strategy.diagnostics()
    return np.concatenate(batches)


def _compare(configs: NDArray, run: StoredRun, problem: Problem, done: int) -> None:
    if not len(configs):
        raise UserError(f"evaluation {done + 1} is stored, but the strategy proposes no more candidates")
    known = run.rows[done : done + len(configs)]
    for row, digest in zip(known, problem.space.digests(configs), strict=False):
        if row.digest != digest:
            raise UserError(f"evaluation {row.evaluation} is not the candidate that {run.identity.strategy} proposes")
