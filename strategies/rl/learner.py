"""A policy that learns: its weights and the memory of its optimizer."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from jax.typing import ArrayLike
from numpy.random import Generator
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


def fresh(node_width: int, feature_width: int, rng: Generator) -> Policy:
    """Return a policy with random weights; JAX would compile half a minute's worth of its own random numbers."""

    def fill(path: tuple[Any, ...], leaf: jax.ShapeDtypeStruct) -> NDArray[np.float32]:
        name = jax.tree_util.keystr(path)
        if "norm" in name:
            return np.full(leaf.shape, 1.0 if name.endswith("weight") else 0.0, np.float32)
        if name.endswith("bias"):
            return np.zeros(leaf.shape, np.float32)
        bound = (0.1 if "out." in name or "values" in name else 1.0) / np.sqrt(leaf.shape[-1])
        return rng.uniform(-bound, bound, leaf.shape).astype(np.float32)

    return jax.tree_util.tree_map_with_path(fill, shape(node_width, feature_width))


def shape(node_width: int, feature_width: int) -> Policy:
    """Return a policy whose arrays have shapes but no content."""
    return eqx.filter_eval_shape(Policy, node_width, feature_width, jax.random.key(0))
