"""Pre-training: one strategy learns on several problems what it will start from on others."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evaluation import default_value, evaluate
from ..core.task import Task
from ..errors import UserError, error_boundary
from ..registry import Registry


@dataclass(frozen=True)
class Lesson:
    """A problem to learn on: unlike in a run, the learner itself spends the evaluations.

    Attributes:
      task: all that may be known of the problem.
      default: what the default costs.
      evaluate: takes `(n, d)` candidates and returns their `(n,)` costs.
    """

    task: Task
    default: float
    evaluate: Callable[[NDArray], NDArray[np.float64]]


Progress = Callable[[int, str], None]
"""Called with the number of evaluations so far and a few words."""


def pretrain(
    registry: Registry,
    strategy: str,
    problems: Sequence[str],
    out: Path,
    budget: int,
    seed: int,
    options: Any,  # noqa: ANN401 - the strategy's own
    progress: Progress,
) -> None:
    """Train a strategy on problems and write what it learned to `out`.

    Args:
      budget: evaluations in all, shared by the problems.
      options: of the strategy, an instance of its `Options`.

    Raises:
      UserError: the strategy cannot be pre-trained, a problem does not load, or the file cannot be written.
    """
    learner = registry.strategy(strategy).pretrain
    if learner is None:
        able = [name for name, load in sorted(registry.strategies().items()) if load().pretrain]
        hint = f"; these can: {', '.join(able)}" if able else ""
        raise UserError(f"strategy {strategy} learns nothing that it could keep from one problem to the next{hint}")
    if not problems:
        raise UserError("no problem is named to learn on; give at least one --problem")
    if not out.parent.is_dir():
        raise UserError(f"there is no folder {out.parent} to write {out.name} to; make it first")
    if out.is_dir() or not os.access(out.parent, os.W_OK):  # said before the work, not after
        raise UserError(f"{out} cannot be written; give --out another file")
    if out.exists():  # runs made with it would refuse to resume with another
        raise UserError(f"{out} is there already; give --out another file, or delete it if no run needs it any more")
    if budget < 1 or seed < 0:
        raise UserError(f"budget must be 1 or more and seed 0 or more, not {budget} and {seed}")
    lessons = [_lesson(registry, problem) for problem in problems]
    with error_boundary(f"strategy {strategy}", "pretrain"):
        learner(lessons, budget, np.random.default_rng(seed), options, out, progress)


def _lesson(registry: Registry, problem_id: str) -> Lesson:
    problem = registry.load(problem_id)
    with error_boundary(f"problem {problem_id}", "structure"):
        task = problem.task(True)
    return Lesson(task, default_value(problem), lambda configs: evaluate(problem, problem.space.check(configs)).values)
