"""Parts of other programs, from which the models know something before the first measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Task, Told, UserError

if TYPE_CHECKING:
    from bbo_suite.tuning.pretraining import Lesson, Progress

_KEPT = 2000
"""Most parts in a file: a run fits its models to all of them each time."""
_BATCH = 20


@dataclass(frozen=True)
class PartsOfOthers:
    """Measured parts of other programs.

    Attributes:
      names: of the f features.
      estimate: the feature with the compiler's own estimate, if there is one.
      features: `(m, f)`.
      logs: `(m,)` log costs.
    """

    names: tuple[str, ...]
    estimate: int | None
    features: NDArray[np.float64]
    logs: NDArray[np.float64]

    @classmethod
    def none(cls, width: int) -> PartsOfOthers:
        """Return no parts, of `width` features."""
        return cls(("",) * width, None, np.empty((0, width)), np.empty(0))

    def beside(self, features: NDArray[np.float64], logs: NDArray[np.float64]) -> PartsOfOthers:
        """Return these parts and `(k,)` more."""
        return PartsOfOthers(
            self.names, self.estimate, np.vstack([self.features, features]), np.append(self.logs, logs)
        )


def collect(
    lessons: Sequence[Lesson],
    budget: int,
    start: Callable[[Task, int], Any],
    rng: Generator,
    progress: Progress,
) -> PartsOfOthers:
    """Search on each lesson with its share of the budget, and return the parts that were measured.

    Args:
      start: returns a `GrayBox` for a task and a number of evaluations.
      rng: draws the parts that are kept if there are too many.
    """
    each = max(1, budget // len(lessons))
    kinds = {_kind(lesson) for lesson in lessons}
    if len(kinds) > 1:
        raise UserError("the parts of these problems have different features; pretrain on problems of one family")
    found = []
    for number, lesson in enumerate(lessons[:budget]):
        found.append(_measured(lesson, start(lesson.task, each), each))
        progress(each * (number + 1), f"{sum(len(logs) for _, logs in found):,} parts")
    features, logs = (np.concatenate(column) for column in zip(*found, strict=True))
    kept = np.sort(rng.permutation(len(logs))[:_KEPT])
    return PartsOfOthers(*kinds.pop(), features[kept], logs[kept])


def _kind(lesson: Lesson) -> tuple[tuple[str, ...], int | None]:
    parts = lesson.task.structure and lesson.task.structure.parts
    if not parts:
        raise UserError(f"{lesson.task.problem} does not describe its parts, so no model can be trained on it")
    return parts.feature_names, parts.estimate


def _measured(lesson: Lesson, strategy: Any, budget: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # noqa: ANN401
    """Run a search and return the features and log costs of the parts that it measured."""
    assert lesson.parts is not None  # `graybox` uses parts
    while budget > 0:
        configs = strategy.ask(min(_BATCH, budget))
        told = lesson.parts(configs)
        strategy.receive(Told(configs, told.values, told.parts))
        budget -= len(configs)
    features, logs = strategy.measured()
    if not len(logs):
        raise UserError(f"graybox learns no model of the parts of {lesson.task.problem}; pretrain on other problems")
    return features, logs
