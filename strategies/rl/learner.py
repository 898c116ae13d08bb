"""A policy that learns: its weights and the memory of its optimizer."""

from __future__ import annotations

import jax
import numpy as np
import optax
from jax.typing import ArrayLike
from numpy.typing import NDArray

from .policy import Graph, Policy
from .ppo import Round, Settings, improve, optimizer, propose


class Learner:
    """Weights that several searches may share, one after the other.

    Args:
      policy: to start from.
      settings: of the objective.
      rate: the learning rate.
      epochs: steps on each round.
    """

    def __init__(self, policy: Policy, settings: Settings, rate: float, epochs: int) -> None:
        self.policy = policy
        self._memory: optax.OptState = optimizer().init(policy)
        self._settings, self._rate, self._epochs = settings, np.float32(rate), epochs

    def propose(self, graph: Graph, state: ArrayLike, alive: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return `(c,)` log-probabilities of the changes and `(c,)` expected worths."""
        logs, worth = propose(self.policy, graph, state, alive)
        return np.asarray(logs), np.asarray(worth)

    def learn(self, graph: Graph, state: ArrayLike, alive: ArrayLike, old: ArrayLike, data: Round) -> None:
        """Improve the policy by what one round taught, from the state in which it was proposed."""
        given = (graph, state, alive, old, data, self._settings, self._rate)
        self.policy, self._memory = improve(self.policy, self._memory, *given, epochs=self._epochs)


_fresh = jax.jit(Policy, static_argnums=(0, 1))  # compiled at once, not operation by operation


def fresh(node_width: int, feature_width: int, seed: int) -> Policy:
    """Return a policy with random weights."""
    return _fresh(node_width, feature_width, jax.random.key(seed))
