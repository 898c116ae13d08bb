"""Evaluating candidates: forbidden ones never reach the problem, and its answer is checked."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError, error_boundary
from ..parts.parts import Parts, check_sums, checked_parts
from .problem import Evaluations, Problem, Status
from .space import row_text


def evaluate(problem: Problem, configs: NDArray, with_parts: bool = False) -> Evaluations:
    """Return the evaluations of `(n, d)` candidates, with `seconds` always filled in.

    Args:
      with_parts: ask for the costs of parts, too.

    Raises:
      ValueError: they are not rows of the space.
      UserError: the problem raised an exception, or returned a wrong shape, NaN, or a value that contradicts its
        status.
    """
    configs = problem.space.check(configs)
    allowed = problem.space.allowed(configs)
    if allowed.all():
        return _evaluate(problem, configs, with_parts)
    n = len(configs)
    values, seconds = np.full(n, np.inf), np.zeros(n)
    status = np.full(n, Status.FORBIDDEN, np.int8)
    reasons = dict.fromkeys(np.flatnonzero(~allowed).tolist(), "a known constraint forbids it")
    parts = Parts.of_none(n) if with_parts and problem.tells_parts else None
    if allowed.any():
        places = np.flatnonzero(allowed)
        done = _evaluate(problem, configs[allowed], with_parts)
        values[places], status[places], seconds[places] = done.values, done.status, done.seconds
        reasons |= {int(places[i]): reason for i, reason in done.reasons.items()}
        parts = done.parts and done.parts.spread(places, n)
    return Evaluations(values, status, reasons, seconds, parts)


def _evaluate(problem: Problem, configs: NDArray, with_parts: bool) -> Evaluations:
    function = problem.evaluate_parts if with_parts else problem.evaluate
    started = time.perf_counter()
    with error_boundary(f"problem {problem.id}", function.__name__):
        answer = function(configs.copy())  # a copy: changes on one side do not reach the other
    elapsed = time.perf_counter() - started
    try:
        checked = _check(answer, configs, elapsed)
        if checked.parts is not None:
            check_sums(problem.combine(checked.parts), checked.values)
    except (ValueError, TypeError, OverflowError) as error:
        raise UserError(f"problem {problem.id}: {error}") from None
    return checked


def _check(answer: Evaluations, configs: NDArray, elapsed: float) -> Evaluations:
    n = len(configs)
    if not isinstance(answer, Evaluations):
        raise ValueError(f"evaluate returned {type(answer).__name__}; return Evaluations.of(values)")
    values, status = np.asarray(answer.values, np.float64), np.asarray(answer.status)
    seconds = np.full(n, elapsed / n) if answer.seconds is None else np.asarray(answer.seconds, np.float64)
    for name, array in (("values", values), ("status", status), ("seconds", seconds)):
        if array.shape != (n,):
            raise ValueError(f"evaluate returned {name} of shape {array.shape} for {n} candidates; return one for each")
    _agree(configs, values, status, seconds)
    if not isinstance(answer.reasons, dict):
        raise ValueError(f"evaluate returned reasons as {type(answer.reasons).__name__}; use a dictionary by position")
    reasons = {int(place): str(reason) for place, reason in answer.reasons.items()}
    parts = None if answer.parts is None else checked_parts(answer.parts, n).merged()
    return Evaluations(values, status.astype(np.int8), reasons, seconds, parts)


def _agree(configs: NDArray, values: NDArray[np.float64], status: NDArray, seconds: NDArray[np.float64]) -> None:
    if not np.isin(status, list(Status)).all():
        raise ValueError(f"evaluate returned status {status[~np.isin(status, list(Status))][0]}; use bbo_suite.Status")
    if not (np.isfinite(seconds) & (seconds >= 0)).all():
        raise ValueError("evaluate returned seconds that are negative or not finite")
    invalid = np.flatnonzero(~(values >= 0))
    if len(invalid):
        advice = "a cost must be 0 or more; a failed candidate costs inf and has a status"
        raise ValueError(f"the value of candidate {row_text(configs[invalid[0]])} is {values[invalid[0]]}; {advice}")
    if ((status == Status.OK) != np.isfinite(values)).any():
        raise ValueError("a value and its status disagree: the value must be finite with status OK, inf otherwise")


def measured_pair(problem: Problem, config: NDArray) -> tuple[float, float, str]:
    """Return the costs of the default and of an allowed `(d,)` candidate, and why the candidate failed, if it did.

    They are evaluated in separate batches: within one batch, equal candidates may be evaluated once.

    Raises:
      UserError: the default fails, or the problem breaks its contract.
    """
    default = default_value(problem)
    own = evaluate(problem, np.array(config)[None])
    status = Status(int(own.status[0]))
    failure = "" if status is Status.OK else f"{status.word}: {own.reasons.get(0, 'no reason given')}"
    return default, float(own.values[0]), failure


def default_value(problem: Problem) -> float:
    """Return the cost of the problem's default candidate; it does not count against a budget.

    Raises:
      UserError: the default fails, or is not a candidate.
    """
    try:
        result = evaluate(problem, problem.default_row()[None])
    except (ValueError, AttributeError) as error:
        raise UserError(f"the default configuration of {problem.id} is not a candidate: {error}") from None
    if result.status[0] != Status.OK:
        word, reason = Status(int(result.status[0])).word, result.reasons.get(0, "no reason given")
        raise UserError(f"the default configuration of {problem.id} fails ({word}: {reason}); a default must work")
    return float(result.values[0])


def told(problem: Problem, step: str, kind: Any, *arguments: Any) -> Any:  # noqa: ANN401 - of `kind`
    """Return what a method of a problem returns.

    Raises:
      UserError: it raised an exception, or returned something that is not of `kind`.
    """
    with error_boundary(f"problem {problem.id}", step):
        value = getattr(problem, step)(*arguments)
    if not isinstance(value, kind):
        words = {str: "a text", Mapping: "a dict"}.get(kind, "an object of bbo_suite, or None")
        raise UserError(f"problem {problem.id}: {step} must return {words}, not {repr(value)[:60]}")
    return value


def working_baselines(problem: Problem) -> dict[str, float]:
    """Return the costs that a problem knows besides its default's, by name, without those that failed.

    Raises:
      UserError: the problem raised an exception, or a cost is negative or NaN.
    """
    stated = told(problem, "baselines", Mapping)
    with error_boundary(f"problem {problem.id}", "baselines"):
        known = {str(name): float(cost) for name, cost in stated.items()}
    if wrong := {name: cost for name, cost in known.items() if not cost >= 0}:
        name, cost = next(iter(wrong.items()))
        raise UserError(
            f"problem {problem.id}: the baseline {name!r} costs {cost:g}; a cost must be 0 or more, or inf if it failed"
        )
    return {name: cost for name, cost in known.items() if math.isfinite(cost)}
