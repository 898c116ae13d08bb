"""A policy at work on one task: it chooses among proposals, and learns what came of them."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Task

from ..changes import Changes
from .inputs import graph_of, rows
from .learner import Learner
from .ppo import Round
from .proposals import compared, draw, log_softmax
from .rewards import Rewards
from .rounds import Gathered
from .seen import Seen
from .values import Values

PROPOSED = 12
"""Proposals for each candidate."""
_FORGETTING = 0.98  # of what a value was worth, a round
_KEPT = 2  # rounds that are learned from again


class Player:
    """Chooses changes of states of one task.

    Args:
      task: what is searched.
      changes: where proposals come from.
      size: candidates of a round, after which the policy learns and looks at the state anew.
      epochs: steps on each round.
      rng: the only source of randomness.
    """

    def __init__(self, task: Task, learner: Learner, changes: Changes, size: int, epochs: int, rng: Generator) -> None:
        self._task, self._learner, self._changes, self._rng = task, learner, changes, rng
        self._size, self._epochs = size, epochs
        self._movable, self._values = Moves(task.space).movable, Values(task.space)
        self._graph = graph_of(task, self._values)
        self._tries, self._worth = np.zeros(len(self._values)), np.zeros(len(self._values))
        self._rewards, self._seen = Rewards(), Seen(len(task.space), rng)
        self._rounds: deque[tuple[NDArray, Round]] = deque(maxlen=_KEPT)
        self._gathered = Gathered()
        self.mean, self.spread = 0.0, 0.0

    def choose(self, state: NDArray, n: int) -> tuple[NDArray, NDArray[np.int64]]:
        """Return `(n, d)` changes of a state, and their kinds."""
        if not self._gathered.count:
            self._look(state)
        k = n * PROPOSED
        configs, kinds = self._varied(state, k)
        self._seen.add(self._seen.keys(state[None], state))
        keys = self._seen.keys(configs, state)
        new = self._seen.new(keys)
        is_open = new if new.sum() >= n else np.ones(k, bool)  # near the end of a small space
        proposals = compared(configs, state, kinds, is_open, self._values)
        scores = proposals.scores(self._worths, self._weights, self._learner.policy.bound)
        logs = log_softmax(scores, is_open)
        chosen = draw(logs, n, self._rng)
        self.spread = float(scores.std())
        self._gathered.add(proposals, chosen, logs[chosen])
        self._seen.add(keys[chosen])
        return configs[chosen], kinds[chosen]

    def _varied(self, state: NDArray, k: int) -> tuple[NDArray, NDArray[np.int64]]:
        """Return `(k, d)` changes of a state at random, and their kinds."""
        configs = np.repeat(state[None], k, axis=0)
        columns = self._movable[self._rng.integers(0, len(self._movable), k)]
        return configs, self._changes.change(configs, np.arange(k), columns)

    def _look(self, state: NDArray) -> None:
        """Let the policy look at the state, once for all candidates of the round."""
        known = np.column_stack([np.log1p(self._tries), self._worth])
        seen = np.hstack([self._values.state(state, self._task.default), known])
        self._observed = rows(seen, len(self._graph.value)).astype(np.float32)
        self._worths, self._weights = self._learner.decide(self._graph, self._observed)

    def learn(self, values: NDArray[np.float64], cost: float) -> None:
        """Take the costs of what was chosen last, and of the state that it changed."""
        self._gathered.reward(self._rewards(values, cost))
        if self._gathered.count < self._size:
            return
        data = self._gathered.padded(self._size)
        self.mean = float(np.concatenate(self._gathered.rewards).mean())
        self._remember(self._gathered)
        self._gathered = Gathered()
        self._study(data)

    def _study(self, data: Round) -> None:
        """Improve the policy by the last rounds."""
        if np.any(data.advantage):  # else there is nothing to prefer
            self._rounds.append((self._observed, data))
            for _ in range(self._epochs):
                for i in self._rng.permutation(len(self._rounds)):
                    self._learner.learn(self._graph, *self._rounds[i])

    def _remember(self, gathered: Gathered) -> None:
        """Fold the round into the number of tries and the mean reward of each value."""
        new, reward, weight = gathered.shares()
        tries = np.bincount(new, weight, len(self._tries))
        total = np.bincount(new, weight * reward, len(self._tries))
        self._tries *= _FORGETTING
        self._worth = np.where(
            tries > 0, (self._tries * self._worth + total) / np.maximum(self._tries + tries, 1e-9), self._worth
        )
        self._tries += tries
