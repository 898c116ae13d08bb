"""Changes of a state that the agent chooses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..adaptive_moves import AdaptiveMutation
from ..annealing import CostDifferences, Neighbours
from .agent import Agent
from .group_tests import GroupTests

_TOGETHER = 4  # groups that are tested at once: more would know less of earlier ones


class ChosenNeighbours(Neighbours):
    """Changes that an agent chooses among random ones; before that, groups of changes, if there are any to test.

    Args:
      agent: chooses, and learns from costs.
      mutation: draws what the agent chooses among.
      tests: groups of changes that come first.
    """

    def __init__(self, agent: Agent, mutation: AdaptiveMutation, tests: GroupTests | None) -> None:
        self._agent, self._mutation, self._tests = agent, mutation, tests
        self._operators = np.zeros(0, np.int64)
        self._differences = CostDifferences()

    @property
    def scale(self) -> float:
        """The median cost difference of a change."""
        return self._differences.median

    @property
    def logarithmic(self) -> bool:
        """True if a change has multiplied the cost by a million."""
        return self._differences.logarithmic

    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return `n` changes of a state; fewer while groups are tested."""
        self._operators = np.zeros(0, np.int64)
        if not n:
            return state[None][:0]
        if self._tests is not None and len(groups := self._tests.draw(state, min(n, _TOGETHER))):
            return groups
        self._tests = None
        configs, self._operators = self._agent.choose(state, n)
        return configs

    def learn(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn which groups pay; else, the agent which changes pay, which operators, and how much costs differ."""
        if self._tests is not None:  # no temperature is taken from their costs: only groups that pay are accepted
            self._tests.learn(cost, values)
        elif len(values):
            self._agent.learn(values, cost)
            self._mutation.learn(self._operators, values < cost)
            self._differences.learn(cost, values)
