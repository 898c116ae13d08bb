"""Stored costs compared with costs measured now."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import evaluate
from ..core.problem import Problem, Status
from ..errors import UserError
from ..store.parts_log import Told, by_candidate
from ..store.rows import Row
from ..store.stored_run import StoredRun
from .log_checks import other_machine
from .parts_checks import changed_part, stored_parts
from .remeasure import Remeasured, measure

LEAST_NOISE = 0.05
"""The relative difference of measured speedups that is always allowed: a few measurements may hide noise."""


def check_values(run: StoredRun, problem: Problem, proposed: NDArray, sample: int, remarks: list[str]) -> list[str]:
    """Return what is not reproduced among the default, the best candidate, the first rows and some improvements.

    Where costs vary, only the best speedup is compared, and only on the same machine.

    Args:
      run: its best candidate, if there is one, must be stored.
      proposed: `(k, d)` the candidates of the first rows, as the replayed strategy proposes them.
      sample: the number of later improvements to check.
      remarks: notes on what was not compared are appended.
    """
    try:
        return _check(run, problem, proposed, sample, remarks)
    except UserError as error:
        return [str(error)]


def _check(run: StoredRun, problem: Problem, proposed: NDArray, sample: int, remarks: list[str]) -> list[str]:
    best = run.best
    config = problem.default_row() if best is None else _unpacked(problem, best)
    again = measure(problem, config)
    if again.noisy:
        return _noisy(run, again, remarks)
    first, stored = run.rows[: len(proposed)], [row for row in run.rows[len(proposed) :] if row.config]
    chosen = np.random.default_rng(0).permutation(len(stored))[:sample]
    later = [stored[i] for i in sorted(chosen.tolist())] + ([best] if best is not None else [])
    configs = [*proposed, *(_unpacked(problem, row) for row in later)]
    parts = stored_parts(run, problem, len(first))
    different = _again(problem, configs, [*first, *later], parts, run.identity.batch)
    return _default(run, again) + list(dict.fromkeys(different))


def _default(run: StoredRun, again: Remeasured) -> list[str]:
    stored, now = run.head["default"], again.defaults[0]
    return [] if stored == now else [f"the default cost {stored!r} and costs {now!r} now"]


def _noisy(run: StoredRun, again: Remeasured, remarks: list[str]) -> list[str]:
    if other_machine(run):
        remarks.append("costs vary, and were measured on another machine: not compared")
        return []
    remarks.append(f"costs vary by {again.spread:.1%}: only the best speedup was compared")
    stored, now = run.speedup, again.speedup
    if not stored:
        return []
    if now is not None and abs(math.log(now / stored)) <= max(LEAST_NOISE, 3 * again.spread):
        return []
    words = f"{now:.4f}" if now is not None else f"none ({again.failure})"
    return [f"the best speedup was {stored:.4f} and is {words} now, where costs vary by {again.spread:.1%}"]


def _again(
    problem: Problem, configs: Sequence[NDArray], rows: Sequence[Row], parts: Sequence[Told], batch: int
) -> Iterator[str]:
    """Yield a sentence for each row with another cost now, or with other parts.

    Timeouts, stored or new, are left out: they depend on the machine.

    Args:
      parts: of the first rows; of none if the run was not told of parts.
    """
    for start in range(0, len(rows), batch):
        part = rows[start : start + batch]
        result = evaluate(problem, np.array(configs[start : start + batch]), with_parts=bool(parts))
        told = by_candidate(result.parts) if result.parts else ()
        for row, value, status in zip(part, result.values.tolist(), result.status.tolist(), strict=True):
            if value != row.value and Status.TIMEOUT not in (row.status, status):
                yield f"evaluation {row.evaluation} cost {row.value!r} and costs {value!r} now"
        for row, stored, now in zip(part, parts[start : start + batch], told, strict=False):
            if row.status is not Status.TIMEOUT and (change := changed_part(row, stored, now)):
                yield change


def _unpacked(problem: Problem, row: Row) -> NDArray:
    try:
        config = problem.space.unpack(row.config)
    except ValueError as error:
        raise UserError(f"the configuration of evaluation {row.evaluation} cannot be read: {error}") from None
    if row.digest and problem.space.digests(config[None]) != [row.digest]:
        raise UserError(f"the configuration of evaluation {row.evaluation} has another digest than the row")
    return config
