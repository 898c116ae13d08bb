"""Pre-training: one policy searches several problems in turns and learns from all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle

import numpy as np

from bbo_suite import Strategy, Task, UserError
from bbo_suite.pretraining import Lesson, Progress

from .inputs import widths_of

_EPISODE = 1000  # evaluations before a search starts anew from the default, since beginnings are what is transferred


def train(lessons: Sequence[Lesson], start: Callable[[Task, int], Strategy], budget: int, progress: Progress) -> None:
    """Search every problem in turns until the evaluations are spent; all searches share one policy."""
    done, speedups = 0, dict[int, float]()
    for i in cycle(range(len(lessons))):
        length = min(_EPISODE, budget - done)
        speedups[i] = _episode(lessons[i], start(lessons[i].task, length), length)
        done += length
        progress(done, f"mean speedup of the last searches: {np.mean(list(speedups.values())):.4f}")
        if done >= budget:
            return


def _episode(lesson: Lesson, search: Strategy, length: int) -> float:
    """Search once from the default and return the speedup."""
    best, done = lesson.default, 0
    while done < length:
        configs = search.ask(length - done)
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
