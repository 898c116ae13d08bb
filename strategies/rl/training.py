"""Pre-training: one policy searches several problems in turn and learns from all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Strategy, Task, UserError
from bbo_suite.tuning.pretraining import Lesson, Progress

from .agent import PROPOSED
from .imitation import ImitationLearner
from .inputs import widths_of

_EPISODE = 1000  # candidates before a search restarts from the default: a policy transfers mostly how a search begins


class BudgetMeter:
    """Counts the evaluations that are left, for candidates and for the proposals among which they are chosen."""

    def __init__(self, budget: int) -> None:
        self.left = budget

    def metered(self, lesson: Lesson) -> Lesson:
        """Return the lesson with its evaluations counted."""

        def evaluate(configs: NDArray) -> NDArray[np.float64]:
            self.left -= len(configs)
            return lesson.evaluate(configs)

        return replace(lesson, evaluate=evaluate)

    @property
    def candidates(self) -> int:
        """The candidates that the budget allows: each costs itself and its proposals, a batch also its state."""
        return max(0, self.left - 1) // (PROPOSED + 1)


def train(
    lessons: Sequence[Lesson],
    start: Callable[[Lesson, int], Strategy],
    learner: ImitationLearner,
    budget: int,
    progress: Progress,
) -> None:
    """Search all problems in turn until the evaluations are spent; all searches share the learner."""
    meter, speedups = BudgetMeter(budget), dict[int, float]()
    for i in cycle(range(len(lessons))):
        if not meter.candidates:
            progress(budget, f"mean speedup of the last searches: {np.mean(list(speedups.values()) or 1.0):.4f}")
            return
        learner.left = meter.left / budget
        lesson = meter.metered(lessons[i])
        speedups[i] = _episode(lesson, start(lesson, _EPISODE), meter)
        progress(budget - meter.left, f"speedup of {lesson.task.problem}: {speedups[i]:.4f}")


def _episode(lesson: Lesson, search: Strategy, meter: BudgetMeter) -> float:
    """Search once from the default while evaluations are left, and return the speedup."""
    best, done = lesson.default, 0
    while n := min(_EPISODE - done, meter.candidates):
        configs = search.ask(n)
        values = lesson.evaluate(configs)
        search.tell(configs, values)
        best, done = min(best, float(values.min())), done + len(configs)
    return lesson.default / best if 0 < best < np.inf else 1.0


def shared_widths(tasks: Sequence[Task]) -> None:
    """Check that nodes and parameters have the same number of features in all problems.

    Raises:
      UserError: they differ.
    """
    widths = {widths_of(task): task.problem for task in tasks}
    if len(widths) > 1:
        (some, one), (others, other) = list(widths.items())[:2]
        counts = f"{one} has {some[0]} of a node and {some[1]} of a parameter, {other} {others[0]} and {others[1]}"
        raise UserError(f"the problems differ in their features: {counts}; pretrain on problems of one family")
