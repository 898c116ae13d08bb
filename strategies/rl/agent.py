"""The agent: it chooses changes of a state among proposals for one task, and learns from what they cost."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Moves, Task

from ..adaptive_moves import AdaptiveMutation
from ..annealing import Neighbours
from .policy import Names, graph_inputs, observed
from .ppo import Learner, Rewards, Rollout, RolloutBuffer
from .proposals import GroupTests, ParameterValues, VisitedSet, draw, log_softmax, proposals_of

_PROPOSED = 12  # proposals for each candidate
_FORGETTING = 0.98  # factor for what is known of each value, after each rollout
_ROLLOUTS = 2  # number of rollouts that are learned from repeatedly
_TOGETHER = 4  # groups that are tested at once: more would know less of earlier ones


class Agent(Neighbours):
    """Changes that a policy chooses among random ones; before that, groups of changes, if there are any to test.

    Args:
      task: the task to search.
      names: of the features that the policy takes.
      learner: holds the policy.
      mutation: draws the proposals.
      size: candidates of a rollout; after each the policy learns and sees the new state.
      epochs: steps on each rollout.
      patience: the tests of groups end after so many in a row that do not pay; 0: none are made.
      rng: the only source of randomness.

    Attributes:
      mean: mean reward of the last rollout.
      spread: standard deviation of the last scores.
    """

    def __init__(
        self,
        task: Task,
        names: Names,
        learner: Learner,
        mutation: AdaptiveMutation,
        size: int,
        epochs: int,
        patience: int,
        rng: Generator,
    ) -> None:
        super().__init__()
        self._task, self._learner, self._mutation, self._rng = task, learner, mutation, rng
        self._size, self._epochs = size, epochs
        self._movable, self._values = Moves(task.space).movable, ParameterValues(task.space)
        self._graph = graph_inputs(task, self._values, names)
        self._tries, self._mean_reward = np.zeros(len(self._values)), np.zeros(len(self._values))
        self._rewards, self._visited = Rewards(), VisitedSet(len(task.space), rng)
        self._rollouts: deque[tuple[NDArray, Rollout]] = deque(maxlen=_ROLLOUTS)
        self._buffer = RolloutBuffer()
        self._operators = np.zeros(0, np.int64)  # of the changes that were chosen last
        self._tests = self._group_tests(patience) if patience else None
        self.mean, self.spread = 0.0, 0.0

    def _group_tests(self, patience: int) -> GroupTests:
        """Return tests of what the policy prefers to the default; see `GroupTests`."""
        seen = observed(self._task, self._values, len(self._graph.value))
        return GroupTests.preferred(self._task, self._values, self._learner.decide(self._graph, seen)[0], patience)

    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return `n` changes of a state; fewer while groups are tested."""
        self._operators = np.zeros(0, np.int64)
        if not n:
            return state[None][:0]
        if self._tests is not None and len(groups := self._tests.draw(state, min(n, _TOGETHER))):
            return groups
        self._tests = None
        return self._choose(state, n)

    def _choose(self, state: NDArray, n: int) -> NDArray:
        """Return the `(n, d)` changes of a state that the policy draws."""
        if not self._buffer.count:
            self._observe(state)
        k = n * _PROPOSED
        configs, operators = self._mutated(state, k)
        self._visited.add(self._visited.keys(state[None], state))
        keys = self._visited.keys(configs, state)
        new = self._visited.new(keys)
        is_open = new if new.sum() >= n else np.ones(k, bool)  # near the end of a small space
        proposals = proposals_of(configs, state, operators, is_open, self._values)
        scores = proposals.scores(self._preferences, self._weights, self._learner.policy.bound)
        logs = log_softmax(scores, is_open)
        chosen = draw(logs, n, self._rng)
        self.spread = float(scores.std())
        self._buffer.add(proposals, chosen, logs[chosen])
        self._visited.add(keys[chosen])
        self._operators = operators[chosen]
        return configs[chosen]

    def _mutated(self, state: NDArray, k: int) -> tuple[NDArray, NDArray[np.int64]]:
        """Return `(k, d)` random changes of a state, and their operators."""
        configs = np.repeat(state[None], k, axis=0)
        columns = self._movable[self._rng.integers(0, len(self._movable), k)]
        return configs, self._mutation.change(configs, np.arange(k), columns)

    def _observe(self, state: NDArray) -> None:
        """Show the state to the policy, once for all candidates of the rollout."""
        statistics = np.column_stack([np.log1p(self._tries), self._mean_reward])
        self._observed = observed(self._task, self._values, len(self._graph.value), state, statistics)
        self._preferences, self._weights = self._learner.decide(self._graph, self._observed)

    def learn(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn which groups pay; else which changes pay, which operators, and how much costs differ."""
        if self._tests is not None:  # no temperature is taken from their costs: only groups that pay are accepted
            self._tests.learn(cost, values)
        elif len(values):
            self._improve(values, cost)
            self._mutation.learn(self._operators, values < cost)
            self.compare(cost, values)

    def _improve(self, values: NDArray[np.float64], cost: float) -> None:
        """Let the policy learn the `(n,)` costs of the changes that were chosen last, given that of the state."""
        self._buffer.reward(self._rewards(values, cost))
        if self._buffer.count < self._size:
            return
        data = self._buffer.rollout(self._size)
        self.mean = float(np.concatenate(self._buffer.rewards).mean())
        self._remember(self._buffer)
        self._buffer = RolloutBuffer()
        if np.any(data.advantage):  # else no choice was better than another
            self._rollouts.append((self._observed, data))
            for _ in range(self._epochs):
                for i in self._rng.permutation(len(self._rollouts)):
                    self._learner.learn(self._graph, *self._rollouts[i])

    def _remember(self, buffer: RolloutBuffer) -> None:
        """Update the number of tries and the mean reward of each value."""
        new, reward, weight = buffer.shares()
        tries = np.bincount(new, weight, len(self._tries))
        total = np.bincount(new, weight * reward, len(self._tries))
        self._tries *= _FORGETTING
        mean = (self._tries * self._mean_reward + total) / np.maximum(self._tries + tries, 1e-9)
        self._mean_reward = np.where(tries > 0, mean, self._mean_reward)
        self._tries += tries
