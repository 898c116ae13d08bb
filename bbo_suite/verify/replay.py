"""Replay of a run: its strategy proposes again, receives the stored values, and its proposals are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.level import Level
from ..core.problem import Evaluations, Problem
from ..core.strategy import Strategy
from ..core.task import Strategies
from ..errors import UserError, error_boundary
from ..loop import search
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
    own = run.identity
    log = PartsLog(run.path) if strategy_class.level >= Level.PARTS and problem.tells_parts else None
    done, batches = 0, [np.empty((0, len(problem.space)), problem.space.dtype)]

    def stored(configs: NDArray, _: float) -> Evaluations:
        _compare(configs, run, problem, done)
        known = run.rows[done : done + len(configs)]
        batches.append(configs[: len(known)])
        parts = log.replay(known[0].evaluation, len(known)) if log and len(known) == len(configs) else None
        values = np.array([row.value for row in known] + [np.inf] * (len(configs) - len(known)))  # the last may be cut
        return Evaluations(values, np.zeros(len(configs), np.int8), parts=parts)

    settings: dict[str, Any] = {"batch": own.batch, "registry": strategies, "answer": stored, "owner": own.strategy}
    with error_boundary(f"strategy {own.strategy}", "its constructor"):
        options = strategy_class.Options(**own.options)
    for batch in search(strategy_class, problem, own.budget, own.generator(), options=options, **settings):
        done += len(batch.configs)
        if done >= min(most, len(run.rows)):
            break
    else:
        if done < min(most, len(run.rows)):
            _compare(batches[0], run, problem, done)
    return np.concatenate(batches)


def _compare(configs: NDArray, run: StoredRun, problem: Problem, done: int) -> None:
    if not len(configs):
        raise UserError(f"evaluation {done + 1} is stored, but the strategy proposes no more candidates")
    known = run.rows[done : done + len(configs)]
    for row, digest in zip(known, problem.space.digests(configs), strict=False):
        if row.digest != digest:
            raise UserError(f"evaluation {row.evaluation} is not the candidate that {run.identity.strategy} proposes")
