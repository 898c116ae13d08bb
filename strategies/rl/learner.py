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

from .policy import BOUND, Graph, Policy
from .ppo import Round, Settings, decide, improve, optimizer


class Learner:
    """Weights that several searches may share, one after the other.

    Args:
      policy: to start from.
      settings: of the objective.
      rate: the learning rate; 0: the policy stays as it is.
    """

    def __init__(self, policy: Policy, settings: Settings, rate: float) -> None:
        self.policy = policy
        self._memory: optax.OptState = optimizer().init(policy)
        self._settings, self._rate = settings, np.float32(rate)

    def decide(self, graph: Graph, state: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return the `(c,)` worths of the values and the `(FACTS,)` weights of the facts."""
        return np.asarray(decide(self.policy, graph, state)), np.asarray(self.policy.facts)

    def learn(self, graph: Graph, state: ArrayLike, data: Round) -> None:
        """Improve the policy by one round, given the state of which it was."""
        if self._rate:
            given = (graph, state, data, self._settings, self._rate)
            self.policy, self._memory = improve(self.policy, self._memory, *given)


def fresh(node_width: int, feature_width: int, rng: Generator, bound: float = BOUND) -> Policy:
    """Return a policy with random weights; JAX would compile half a minute's worth of its own random numbers."""

    def fill(path: tuple[Any, ...], leaf: jax.ShapeDtypeStruct) -> NDArray[np.float32]:
        name = jax.tree_util.keystr(path)
        if "norm" in name:
            return np.full(leaf.shape, 1.0 if name.endswith("weight") else 0.0, np.float32)
        if name.endswith(("bias", "facts")):
            return np.zeros(leaf.shape, np.float32)
        bound = (0.1 if "out." in name or "values" in name else 1.0) / np.sqrt(leaf.shape[-1])
        return rng.uniform(-bound, bound, leaf.shape).astype(np.float32)

    return jax.tree_util.tree_map_with_path(fill, shape(node_width, feature_width, bound))


def shape(node_width: int, feature_width: int, bound: float) -> Policy:
    """Return a policy whose arrays have shapes but no content."""
    return eqx.filter_eval_shape(Policy, node_width, feature_width, jax.random.key(0), bound)
