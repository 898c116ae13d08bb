"""The training data: candidates of many tasks, and how fast each is among those of its task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Strategy, UserError
from bbo_suite.tuning.pretraining import Lesson

from ..evolution import Evolution
from .description import Group, feature_names, groups
from .predictor import FAILED, Predictor, predict
from .search import ranked

Tell = Callable[[int, str], None]
"""Receives the number of evaluations so far and a message."""

_QUERIES = 6144  # predictions for the picks of a task
_RANDOM = 0.25  # share of the candidates that is drawn at random, where the others explore


@dataclass(frozen=True)
class Samples:
    """Samples of t tasks, r candidates each.

    Attributes:
      groups: t groups, the only one of each task.
      lessons: the t tasks.
      rows: t arrays `(r, p)` of indices.
      labels: `(t, r)` log of the cost over the median cost of the task's candidates; `FAILED` for a failure.
    """

    lessons: list[Lesson]
    groups: list[Group]
    rows: list[NDArray]
    labels: NDArray[np.float32]


def collect(lessons: Sequence[Lesson], each: int, explore: bool, rng: Generator, tell: Tell) -> Samples:
    """Evaluate candidates of all tasks, `each` of every one.

    Args:
      explore: most candidates are those of an evolutionary search; else all are random.

    Raises:
      UserError: a task has several groups, or no task teaches anything.
    """
    found = []
    for number, lesson in enumerate(lessons, 1):
        group, rows = _only_group(lesson), lesson.task.space.sample(each, rng)
        found.append((lesson, group, _explored(lesson, each, rng) if explore else rows))
        if number % 50 == 0:
            tell(each * number, f"{number} of {len(lessons)} tasks explored")
    return _labelled(found)


def extended(samples: Samples, predictor: Predictor, each: int, rng: Generator, tell: Tell) -> Samples:
    """Return samples with `each` more candidates of every task: those that a predictor takes for fast.

    A search on the predictor finds its errors. These candidates tell it about them.
    """
    found, before = [], len(samples.lessons) * samples.labels.shape[1]
    for number, (lesson, group, rows) in enumerate(zip(samples.lessons, samples.groups, samples.rows, strict=True), 1):
        order = ranked(lesson.task.space, lesson.task.default, partial(predict, predictor, group), _QUERIES, rng)
        best = np.arange(each // 2) if len(order) > each else np.arange(0)
        further = rng.integers(0, min(len(order), 5 * each), each - len(best))
        found.append((lesson, group, np.vstack([rows, order[best], order[further]])))
        if number % 50 == 0:
            tell(before + each * number, f"picks of {number} of {len(samples.lessons)} tasks")
    return _labelled(found)


def _labelled(found: list[tuple[Lesson, Group, NDArray]]) -> Samples:
    """Evaluate the candidates; tasks that teach nothing are left out."""
    given = [(*each, labels(each[0].evaluate(each[2]))) for each in found]
    kept = [(lesson, group, rows, label) for lesson, group, rows, label in given if label is not None]
    if not kept:
        raise UserError("no training task has two candidates that work and differ in cost; train on other tasks")
    lessons, groups, rows, label = map(list, zip(*kept, strict=True))
    return Samples(lessons, groups, rows, np.stack(label))


def labels(values: NDArray[np.float64]) -> NDArray[np.float32] | None:
    """Return the `(r,)` labels of the costs of one task; None if they teach nothing.

    That is so if all failed or cost the same, or if the median is no positive number: a cost of 0 marks a kernel that
    was not timed.
    """
    works = np.isfinite(values)
    if not works.any() or (values[works] <= 0).any() or np.ptp(values[works]) == 0:
        return None
    logs = np.log(np.where(works, values, 1.0))
    return np.where(works, np.minimum(logs - np.median(logs[works]), FAILED), FAILED).astype(np.float32)


def _explored(lesson: Lesson, n: int, rng: Generator) -> NDArray:
    """Return `(n, p)` candidates: a quarter at random, the others those of an evolutionary search."""
    drawn = lesson.task.space.sample(max(1, round(_RANDOM * n)), rng)
    search: Strategy = Evolution(lesson.task, n - len(drawn), rng.spawn(1)[0], Evolution.Options())
    while len(drawn) < n:
        rows = search.ask(min(20, n - len(drawn)))
        if not len(rows):  # the search has tried all
            return np.vstack([drawn, drawn[rng.integers(0, len(drawn), n - len(drawn))]])
        search.tell(rows, lesson.evaluate(rows))
        drawn = np.vstack([drawn, rows])
    return drawn


def common_names(lessons: Sequence[Lesson]) -> tuple[str, ...]:
    """Return the names of what describes all tasks.

    Raises:
      UserError: two tasks are described by different features.
    """
    first = lessons[0].task
    for task in (lesson.task for lesson in lessons):
        if feature_names(task) != feature_names(first):
            raise UserError(
                f"{first.problem} and {task.problem} declare different features; train on one family, or on recorded"
                " spaces with the same parameters"
            )
    return feature_names(first)


def _only_group(lesson: Lesson) -> Group:
    task = lesson.task
    found = groups(task)
    if len(found) > 1:
        raise UserError(
            f"{task.problem} has {len(found)} groups of parameters that do not interact, so their costs cannot be told"
            " apart; train on tasks of one kernel each, such as tile/rnn#0, or on a family of tasks"
        )
    return found[0]
