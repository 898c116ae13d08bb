"""Annealing inside local search: it is to leave what the others have found."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Task

from ..annealing import Annealing
from .descent import Asking
from .operators import ROUND
from .search_state import SearchState

SHARE = 0.5
"""Of the turns, how many are exploration."""

_HEAT, _BATCHES = 0.6, 5
_TURNS = 30  # of all parameters, in which annealing settles from anywhere


class Exploration:
    """Hot `annealing` that is deaf to what others find, in turns of a few batches.

    It starts from a random candidate where that runs and there is time for 30 turns of all parameters: the default may
    lie where small changes do not lead out. Else it starts from the state.

    Args:
      state: is moved to what is better.
      task: whose space is searched.
      budget: candidates left, of which it has a share.
      rng: draws all it needs.

    Attributes:
      is_asking: are the candidates that are measured now its own?
    """

    def __init__(self, state: SearchState, task: Task, budget: int, rng: Generator) -> None:
        self._state, self._space, self._rng = state, task.space, rng
        self._settles = SHARE * budget >= _TURNS * len(Moves(task.space).movable)
        self._annealing = Annealing(task, budget, rng, Annealing.Options(heat=_HEAT))
        self.is_asking = False

    def begin(self) -> Asking:
        """Choose where to start."""
        start, cost = self._state.row[None], np.array([self._state.cost])
        if self._settles:
            drawn = self._space.sample(1, self._rng)
            known = yield drawn
            if np.isfinite(known[0]):
                start, cost = drawn, known
        self._annealing.observe(start, cost)

    def turn(self) -> Asking:
        """Go on, and take what is better than the state."""
        self.is_asking = True
        for _ in range(_BATCHES):
            rows = self._annealing.ask(ROUND)
            if not len(rows):
                break
            costs = yield rows
            self._annealing.tell(rows, costs)
            best = int(np.argmin(costs))
            if costs[best] < self._state.cost:
                self._state.move(rows[best].copy(), float(costs[best]))
        self.is_asking = False

    def pass_by(self, configs: NDArray) -> None:
        """Let the time pass that candidates of others took; it cools, and does not propose them again."""
        self._annealing.observe(configs, np.full(len(configs), np.inf))
