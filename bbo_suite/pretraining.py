"""Pre-training: a strategy trains on some problems, or on tasks drawn from a family, and starts on others from that."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .core.evaluation import default_value, evaluate
from .core.level import Level
from .core.problem import Evaluations, Problem, set_fact
from .core.strategy import Strategy
from .core.task import Task
from .errors import UserError, did_you_mean, error_boundary
from .registry import Registry


class TaskFamily(ABC):
    """A distribution of problems with the same parameters, which differ in what they tune, such as a kernel's shape.

    A subclass sets `instances`, the names of its distributions. Its constructor takes one of them.
    """

    instances: ClassVar[Sequence[str]] = ()

    def __init__(self, instance: str) -> None:
        self.instance = instance

    @abstractmethod
    def sample(self, rng: Generator) -> Problem:
        """Return a problem drawn at random. All of a family declare structures with the same features."""


@dataclass(frozen=True)
class Lesson:
    """A training problem: unlike in a run, the strategy itself calls `evaluate`.

    Attributes:
      task: the problem as a strategy sees it.
      default: the cost of the default candidate.
      evaluate: takes `(n, d)` candidates and returns their `(n,)` costs.
      parts: takes `(n, d)` candidates and returns their evaluations with those of their parts; None for a strategy that
        does not use them.
    """

    task: Task
    default: float
    evaluate: Callable[[NDArray], NDArray[np.float64]]
    parts: Callable[[NDArray], Evaluations] | None = None


Progress = Callable[[int, str], None]
"""Called with the number of evaluations so far and a short description."""


def pretrain(
    registry: Registry,
    strategy: str,
    problems: Sequence[str],
    out: Path,
    budget: int,
    seed: int,
    options: Any,  # noqa: ANN401 - an instance of the strategy's Options
    progress: Progress,
    families: Sequence[str] = (),
    tasks: int = 1000,
) -> None:
    """Train a strategy on problems and write the result to `out`.

    Args:
      budget: total evaluations, shared by the problems.
      families: ids of families of tasks, of which each gives `tasks` further problems.
      options: an instance of the strategy's `Options`.

    Raises:
      UserError: the strategy cannot be pre-trained, a problem does not load, or the file cannot be written.
    """
    found = registry.strategy(strategy)
    learner = found.pretrain
    if learner is None:
        able = [name for name, load in sorted(registry.strategies().items()) if load().pretrain]
        hint = f"; choose one of {', '.join(able)}" if able else ""
        raise UserError(f"strategy {strategy} cannot be pre-trained{hint}")
    if not problems and not families:
        raise UserError("no training problem is given; use --problem or --family")
    if not out.parent.is_dir():
        raise UserError(f"there is no folder {out.parent} for {out.name}; create it first")
    if out.is_dir() or not os.access(out.parent, os.W_OK):  # fail before the work, not after it
        raise UserError(f"{out} cannot be written; choose another file with --out")
    if out.exists():  # runs that used it could not resume with another file
        raise UserError(f"{out} exists already; choose another file with --out, or delete it if no run needs it")
    if budget < 1:
        raise UserError(f"budget must be 1 or more, not {budget}")
    if seed < 0:
        raise UserError(f"seed must be 0 or more, not {seed}")
    if tasks < 1:
        raise UserError(f"tasks must be 1 or more, not {tasks}")
    rng = np.random.default_rng(seed)
    lessons = [_lesson(registry.load(problem), found) for problem in problems]
    lessons += [lesson for family in families for lesson in _drawn(registry, family, found, tasks, rng.spawn(1)[0])]
    with error_boundary(f"strategy {strategy}", "pretrain"):
        learner(lessons, budget, rng, options, out, progress)


def task_family(registry: Registry, family_id: str) -> TaskFamily:
    """Return the distribution of tasks `family/instance`.

    Raises:
      UserError: there is none.
    """
    name, _, instance = family_id.partition("/")
    families = registry.known("bbo_suite.task_families", TaskFamily)
    known = [f"{family}/{each}" for family, load in families.items() for each in load().instances]
    if family_id not in known:
        raise UserError(f"there is no family of tasks {family_id!r}.{did_you_mean(family_id, known)}")
    with error_boundary(f"family {family_id}", "loading"):
        return families[name]()(instance)


def _drawn(
    registry: Registry, family_id: str, strategy: type[Strategy], tasks: int, rng: Generator
) -> Iterator[Lesson]:
    family = task_family(registry, family_id)
    for number in range(tasks):
        with error_boundary(f"family {family_id}", "sample"):
            problem = family.sample(rng)
        set_fact(problem, "id", f"{family_id} #{number}")
        yield _lesson(problem, strategy)


def _lesson(problem: Problem, strategy: type[Strategy]) -> Lesson:
    def evaluated(configs: NDArray, with_parts: bool = False) -> Evaluations:
        return evaluate(problem, problem.space.check(configs), with_parts)

    with error_boundary(f"problem {problem.id}", "structure"):
        task = problem.task(max(strategy.level, Level.STRUCTURE))
    parts = partial(evaluated, with_parts=True) if strategy.level >= Level.PARTS else None
    return Lesson(task, default_value(problem), lambda configs: evaluated(configs).values, parts)
