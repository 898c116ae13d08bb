"""Changes of a state that the agent chooses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..mutation import AdaptiveMutation
from ..neighbours import CostDifferences, Neighbours
from .agent import Agent


class ChosenNeighbours(Neighbours):
    """Changes that an agent chooses among random ones.

    Args:
      agent: chooses; it is told costs by the strategy, before the state moves.
      mutation: draws what the agent chooses among.
    """

    def __init__(self, agent: Agent, mutation: AdaptiveMutation) -> None:
        self._agent, self._mutation = agent, mutation
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
        """Return `n` changes of a state."""
        if not n:
            self._operators = np.zeros(0, np.int64)
            return state[None][:0]
        configs, self._operators = self._agent.choose(state, n)
        return configs

    def learn(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn which operators pay and how much changes differ in cost."""
        self._mutation.learn(self._operators, values < cost)
        self._differences.learn(cost, values)
