"""A policy in training: it is told what all proposals cost, not only those that it chose."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.tuning.pretraining import Lesson

from ..changes import Changes
from .imitation import Apprentice, Example
from .player import Player
from .ppo import Round
from .rounds import filled


class Pupil(Player):
    """Searches as a player does, and imitates who chooses proposals in proportion to what they gain.

    Args:
      apprentice: whom all searches share.
      lesson: what is searched.
    """

    def __init__(self, apprentice: Apprentice, lesson: Lesson, changes: Changes, size: int, rng: Generator) -> None:
        super().__init__(lesson.task, apprentice, changes, size, 0, rng)
        self._apprentice, self._evaluate = apprentice, lesson.evaluate
        self._shares: list[NDArray[np.float64]] = []

    def _varied(self, state: NDArray, k: int) -> tuple[NDArray, NDArray[np.int64]]:
        configs, kinds = super()._varied(state, k)
        values = self._evaluate(np.concatenate([state[None], configs]))
        self._shares.append(shares(values[1:], float(values[0])))
        return configs, kinds

    def _study(self, data: Round) -> None:
        wanted = filled(np.concatenate(self._shares), len(data.open), 0.0) * data.open
        self._shares = []
        if wanted.any():
            self._apprentice.imitate(Example(self._graph, self._observed, data, wanted.astype(np.float32)))


def shares(values: NDArray[np.float64], state: float) -> NDArray[np.float64]:
    """Return `(k,)` shares of changes of a state in what all of them gain; all 0 where none gains."""
    gains = np.isfinite(values) if np.isinf(state) else np.maximum(state - values, 0.0)
    return gains / (gains.sum() or 1.0)
