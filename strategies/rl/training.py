"""Pre-training: one policy searches several problems in turns and learns from all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Strategy, Task, UserError
from bbo_suite.tuning.pretraining import Lesson, Progress

from .imitation import Apprentice
from .inputs import widths_of
from .player import PROPOSED

_EPISODE = 1000  # candidates before a search starts anew from the default, since beginnings are what is transferred


class _Purse:
    """The evaluations that are left, of candidates and of the proposals that they were chosen among."""

    def __init__(self, budget: int) -> None:
        self.left = budget

    def paying(self, lesson: Lesson) -> Lesson:
        """Return the lesson, with evaluations taken from the purse."""

        def evaluate(configs: NDArray) -> NDArray[np.float64]:
            self.left -= len(configs)
            return lesson.evaluate(configs)

        return replace(lesson, evaluate=evaluate)

    @property
    def candidates(self) -> int:
        """How many candidates can be asked for at once, each with its proposals, all with their state."""
        return max(0, self.left - 1) // (PROPOSED + 1)


def train(
    lessons: Sequence[Lesson],
    start: Callable[[Lesson, int], Strategy],
    apprentice: Apprentice,
    budget: int,
    progress: Progress,
) -> None:
    """Search every problem in turns until the evaluations are spent; all searches share the apprentice."""
    purse, speedups = _Purse(budget), dict[int, float]()
    for i in cycle(range(len(lessons))):
        if not purse.candidates:
            progress(budget, f"mean speedup of the last searches: {np.mean(list(speedups.values()) or 1.0):.4f}")
            return
        apprentice.left = purse.left / budget
        lesson = purse.paying(lessons[i])
        speedups[i] = _episode(lesson, start(lesson, _EPISODE), purse)
        progress(budget - purse.left, f"speedup of {lesson.task.problem}: {speedups[i]:.4f}")


def _episode(lesson: Lesson, search: Strategy, purse: _Purse) -> float:
    """Search once from the default, as long as there are evaluations, and return the speedup."""
    best, done = lesson.default, 0
    while n := min(_EPISODE - done, purse.candidates):
        configs = search.ask(n)
        values = lesson.evaluate(configs)
        search.tell(configs, values)
        best, done = min(best, float(values.min())), done + len(configs)
    return lesson.default / best if 0 < best < np.inf else 1.0


def shared_widths(tasks: Sequence[Task]) -> None:
    """Check that the nodes and the parameters of all problems have as many features.

    Raises:
      UserError: they differ.
    """
    seen = {widths_of(task): task.problem for task in tasks}
    if len(seen) > 1:
        (some, one), (others, other) = list(seen.items())[:2]
        counts = f"{one} has {some[0]} of a node and {some[1]} of a parameter, {other} {others[0]} and {others[1]}"
        raise UserError(f"the problems differ in their features: {counts}; pretrain on problems of one family")
