"""A network that predicts the discounted gain of each step from a candidate, learned from the steps that were taken."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.jax_settings import configure_jax

from .mlp import Weights, new_weights, outputs

_BATCH, _BATCHES = 32, 31
_HIDDEN = (64, 64, 64)


class QNetwork:
    """Predicts the gain of each of some actions.

    Args:
      width: the length of a state.
      actions: their number.
      rate: of Adadelta.
      discount: the weight of later gains.
      seed: of the first weights.
    """

    def __init__(self, width: int, actions: int, rate: float, discount: float, seed: int) -> None:
        configure_jax()
        self._weights = new_weights((width, *_HIDDEN, actions), seed)
        self._rate, self._discount = rate, discount

    def gains(self, states: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the `(n, a)` predicted gains of all actions in `(n, d)` states."""
        return np.asarray(_outputs(self._weights, states), np.float64)

    def train(
        self,
        states: NDArray[np.float32],
        actions: NDArray[np.int64],
        after: NDArray[np.float32],
        rewards: NDArray[np.float64],
        epochs: int,
        rng: Generator,
    ) -> None:
        """Learn from n actions, the states after them, and their rewards, against the network as it was before."""
        target, memory = self._weights, optax.adadelta(self._rate).init(self._weights)
        for _ in range(math.ceil(epochs * len(actions) / (_BATCH * _BATCHES))):
            chosen = rng.integers(0, len(actions), (_BATCHES, _BATCH))
            batches = states[chosen], actions[chosen], after[chosen], rewards[chosen].astype(np.float32)
            self._weights, memory = _trained(self._weights, target, memory, batches, self._rate, self._discount)


_outputs = jax.jit(outputs)


@jax.jit
def _trained(weights: Weights, target: Weights, memory: Any, batches: Any, rate: float, discount: float) -> Any:  # noqa: ANN401 - trees
    """Return the weights, and the memory of the optimizer, after `(b, 32, ...)` batches."""

    def loss(weights: Weights, batch: Any) -> jax.Array:  # noqa: ANN401
        states, actions, after, rewards = batch
        wanted = rewards + discount * outputs(target, after).max(axis=1)
        chosen = jnp.take_along_axis(outputs(weights, states), actions[:, None], axis=1)[:, 0]
        return jnp.sum((chosen - wanted) ** 2)

    def step(carry: Any, batch: Any) -> Any:  # noqa: ANN401
        weights, memory = carry
        updates, memory = optax.adadelta(rate).update(jax.grad(loss)(weights, batch), memory, weights)
        return (optax.apply_updates(weights, updates), memory), None

    carry, _ = jax.lax.scan(step, (weights, memory), batches)
    return carry
