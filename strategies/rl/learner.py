"""The learner: the weights of a policy and the state of its optimizer."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from jax.typing import ArrayLike
from numpy.random import Generator
from numpy.typing import NDArray

from .policy import BOUND, GraphInputs, Policy
from .ppo import Rollout, Settings, decide, improve, optimizer


class Learner:
    """Trains a policy by PPO; several searches may share it, one after the other.

    Args:
      policy: the policy to start from.
      settings: settings of the objective.
      rate: the learning rate; 0: the policy does not change.
    """

    def __init__(self, policy: Policy, settings: Settings, rate: float) -> None:
        self.policy = policy
        self._optimizer_state: optax.OptState = optimizer().init(policy)
        self._settings, self._rate = settings, np.float32(rate)

    def decide(self, graph: GraphInputs, state: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return the `(c,)` preferences for the values and the `(FACTS,)` weights of the facts."""
        return np.asarray(decide(self.policy, graph, state)), np.asarray(self.policy.facts)

    def learn(self, graph: GraphInputs, state: ArrayLike, data: Rollout) -> None:
        """Improve the policy by one rollout, given the state that the policy saw."""
        if self._rate:
            arguments = (graph, state, data, self._settings, self._rate)
            self.policy, self._optimizer_state = improve(self.policy, self._optimizer_state, *arguments)


def random_policy(node_width: int, feature_width: int, rng: Generator, bound: float = BOUND) -> Policy:
    """Return a policy with random weights, drawn by numpy: JAX would compile its own generators for half a minute."""

    def fill(path: tuple[Any, ...], leaf: jax.ShapeDtypeStruct) -> NDArray[np.float32]:
        name = jax.tree_util.keystr(path)
        if "norm" in name:
            return np.full(leaf.shape, 1.0 if name.endswith("weight") else 0.0, np.float32)
        if name.endswith(("bias", "facts")):
            return np.zeros(leaf.shape, np.float32)
        bound = (0.1 if "out." in name or "values" in name else 1.0) / np.sqrt(leaf.shape[-1])
        return rng.uniform(-bound, bound, leaf.shape).astype(np.float32)

    return jax.tree_util.tree_map_with_path(fill, policy_shape(node_width, feature_width, bound))


def policy_shape(node_width: int, feature_width: int, bound: float) -> Policy:
    """Return a policy whose arrays have shapes but no content; to fill or to read weights into."""
    return eqx.filter_eval_shape(Policy, node_width, feature_width, jax.random.key(0), bound)
