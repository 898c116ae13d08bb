"""Parts of other programs, from which the models know something before the first measurement, and files of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Decomposition, Task, Told, UserError
from bbo_suite.core.versions import content
from bbo_suite.files.arrays import ArrayFile
from bbo_suite.loop import drive

if TYPE_CHECKING:
    from bbo_suite.pretraining import Lesson, Progress

_MOST = 2000
"""Most parts in a file: a run fits its models to all of them each time."""
_BATCH = 20
_FILE = ArrayFile(
    "file of parts for graybox", 1, "make one with `python -m bbo_suite pretrain --strategy graybox`", old_key="graybox"
)
"""The version is raised whenever the meaning of a file changes."""


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
      rng: draws the parts that are chosen if there are too many.
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
    chosen = np.sort(rng.permutation(len(logs))[:_MOST])
    return PartsOfOthers(*kinds.pop(), features[chosen], logs[chosen])


def _kind(lesson: Lesson) -> tuple[tuple[str, ...], int | None]:
    parts = lesson.task.structure and lesson.task.structure.parts
    if not parts:
        raise UserError(f"{lesson.task.problem} does not describe its parts, so no model can be trained on it")
    return parts.feature_names, parts.estimate


def _measured(lesson: Lesson, strategy: Any, budget: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # noqa: ANN401
    """Run a search and return the features and log costs of the parts that it measured."""
    evaluate = lesson.parts
    assert evaluate is not None  # `graybox` uses parts
    for batch in drive(strategy, lambda configs, _: evaluate(configs), _BATCH):
        budget -= len(batch.configs)
        if not budget:  # the last batch teaches, too
            strategy.receive(Told(batch.configs, batch.values, batch.evaluations.parts))
    features, logs = strategy.measured()
    if not len(logs):
        raise UserError(f"graybox learns no model of the parts of {lesson.task.problem}; pretrain on other problems")
    return features, logs


def save(parts: PartsOfOthers, path: Path) -> None:
    """Write parts.

    Raises:
      UserError: the file cannot be written.
    """
    header = {"features": parts.names, "estimate": parts.estimate}
    _FILE.save(path, header, {"features": parts.features, "logs": parts.logs})


def load(file: str, declared: Decomposition, task: str) -> PartsOfOthers:
    """Return the parts in a file, for a task that declares such parts.

    Raises:
      UserError: the file holds no parts, is of another version, or has other features than the task.
    """
    path, data = content(file)
    header, arrays = _FILE.load(data, path)
    names = tuple(declared.feature_names)
    if header.get("features") != list(names) or header.get("estimate") != declared.estimate:
        raise UserError(f"{path} does not fit {task}: its parts have other features; pretrain on tasks of its family")
    try:
        features, logs = (arrays[name].astype(np.float64) for name in ("features", "logs"))
    except (KeyError, ValueError):
        raise _FILE.damaged(path) from None
    fits = logs.ndim == 1 and len(logs) and features.shape == (len(logs), len(names))
    if not fits or not (np.isfinite(features).all() and np.isfinite(logs).all()):
        raise _FILE.damaged(path)
    return PartsOfOthers(declared.feature_names, declared.estimate, features, logs)
