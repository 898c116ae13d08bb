"""Pre-training: one policy searches several problems in turns and learns from all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from bbo_suite import UserError
from bbo_suite.pretraining import Lesson, Progress

from .changes import Changes
from .inputs import graph_of
from .learner import Learner
from .policy import Graph
from .search import Search

_EPISODE = 1000  # evaluations before a search starts anew from the default, since beginnings are what is transferred


class Pupil:
    """One problem, searched again and again."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.changes = Changes(lesson.task.space)
        if not len(self.changes):
            raise UserError(f"problem {lesson.task.problem} has nothing to decide; leave it out")
        self.graph = graph_of(lesson.task, self.changes)
        self.speedup = 1.0
        self._search: Search | None = None
        self._left = 0

    def turn(self, learner: Learner, size: int, tail: float, rng: Generator) -> int:
        """Play one round, the last of an episode included, and return how many evaluations it took."""
        if self._search is None:
            self._left = _EPISODE
            self._search = Search(self.lesson.task, self.changes, self.graph, learner, size, tail, rng)
        configs = self._search.ask(size)
        self._search.tell(configs, self.lesson.evaluate(configs))
        self._left -= len(configs)
        if self._left <= 0:
            cost, self._search = self._search.incumbent.cost, None
            self.speedup = self.lesson.default / cost if 0 < cost < np.inf else 1.0
        return len(configs)


def shared_widths(pupils: Sequence[Pupil]) -> tuple[int, int]:
    """Return how many features the nodes and the parameters of all problems have.

    Raises:
      UserError: they differ.
    """
    seen = {_widths(pupil.graph): pupil.lesson.task.problem for pupil in pupils}
    if len(seen) > 1:
        (some, one), (others, other) = list(seen.items())[:2]
        counts = f"{one} has {some[0]} of a node and {some[1]} of a parameter, {other} {others[0]} and {others[1]}"
        raise UserError(f"the problems differ in their features: {counts}; pretrain on problems of one family")
    return next(iter(seen))


def _widths(graph: Graph) -> tuple[int, int]:
    return graph.nodes.shape[1], graph.features.shape[1]


def train(pupils: Sequence[Pupil], learner: Learner, budget: int, options: Any, rng: Generator, show: Progress) -> None:  # noqa: ANN401 - ReinforcementOptions
    """Give every problem one round at a time until the evaluations are spent."""
    done = 0
    while done < budget:
        for pupil in pupils:
            done += pupil.turn(learner, min(options.round, max(1, budget - done)), options.tail, rng)
            if done >= budget:
                break
        mean = np.mean([pupil.speedup for pupil in pupils])
        show(min(done, budget), f"mean speedup after {_EPISODE:,} evaluations: {mean:.4f}")
