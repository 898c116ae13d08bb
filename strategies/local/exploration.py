"""Annealing inside local search: it explores away from what the other operators have found."""

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
"""Share of the turns that explore."""

_HEAT, _BATCHES = 0.6, 5
_TURNS = 30  # turns of all parameters in which annealing converges from any start


class Exploration:
    """Hot `annealing`, a few batches at a time, that does not adopt what other operators find.

    It starts from a random candidate if that one runs and the budget allows 30 turns of all parameters: small
    changes may not lead away from the default. Otherwise it starts from the state.

    Args:
      state: is moved to better candidates.
      task: the task.
      budget: candidates that are left for all of local search.
      rng: the only source of randomness.

    Attributes:
      is_asking: true while its own candidates are measured.
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
        """Continue for a few batches, and move the state to what is better."""
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

    def observe(self, configs: NDArray) -> None:
        """Advance the schedule by candidates of other operators, which are not proposed again."""
        self._annealing.observe(configs, np.full(len(configs), np.inf))
