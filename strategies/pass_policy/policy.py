"""A small network that takes an observation and says how good each action is, and how it learns by imitation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.typing import NDArray

_WIDTH, _DROPPED = 128, 0.2
_RATE, _DECAY = 1e-3, 1e-2
_MEMBERS = 4
_SMOOTHING = 0.02
Policy = Callable[[Any], NDArray[np.float64]]
"""Takes one observation, returns the logarithms of the probabilities of all actions."""


class _Network(eqx.Module):
    first: eqx.nn.Linear
    second: eqx.nn.Linear
    drop: eqx.nn.Dropout

    def __init__(self, inputs: int, actions: int, key: Array) -> None:
        first, second = jax.random.split(key)
        self.first = eqx.nn.Linear(inputs, _WIDTH, key=first)
        self.second = eqx.nn.Linear(_WIDTH, actions, key=second)
        self.drop = eqx.nn.Dropout(_DROPPED)

    def __call__(self, x: Array, key: Array | None = None) -> Array:
        """Return the logits of actions; with a key, inputs and hidden units are dropped at random."""
        first, second = (None, None) if key is None else jax.random.split(key)
        x = self.drop(x, key=first, inference=key is None)
        return self.second(self.drop(jax.nn.relu(self.first(x)), key=second, inference=key is None))


def imitate(
    observations: Sequence[NDArray[np.float32]], actions: NDArray[np.int64], count: int, steps: int, seed: int
) -> Policy:
    """Return a policy that does what was demonstrated: the mean of four networks.

    Args:
      observations: n of them, `(width,)`, never negative.
      actions: `(n,)` what is right after each.
      count: the number of all actions.
      steps: of the optimiser, on all observations at once.
      seed: of weights and dropout.
    """
    inputs = np.log1p(np.stack(observations))
    middle, scale = inputs.mean(axis=0), inputs.std(axis=0) + 0.05  # what never varied must not decide
    x = jnp.asarray((inputs - middle) / scale)
    wanted = optax.smooth_labels(jax.nn.one_hot(actions, count), _SMOOTHING)
    networks = [
        _trained(_Network(x.shape[1], int(count), jax.random.key(seed + i)), x, wanted, steps) for i in range(_MEMBERS)
    ]

    def policy(observation: NDArray[np.float32]) -> NDArray[np.float64]:
        given = jnp.clip((np.log1p(observation) - middle) / scale, -5, 5)
        return np.asarray(_mixed(networks, given), np.float64)

    return policy


@eqx.filter_jit
def _mixed(networks: list[_Network], x: Array) -> Array:
    return jnp.log(jnp.mean(jnp.stack([jax.nn.softmax(network(x)) for network in networks]), axis=0))


@eqx.filter_jit
def _trained(network: _Network, x: Array, wanted: Array, steps: int) -> _Network:
    optimiser = optax.adamw(_RATE, weight_decay=_DECAY)
    weights, static = eqx.partition(network, eqx.is_inexact_array)

    def loss(weights: _Network, key: Array) -> Array:
        logits = jax.vmap(eqx.combine(weights, static))(x, jax.random.split(key, len(x)))
        return optax.softmax_cross_entropy(logits, wanted).mean()

    def step(state: tuple, key: Array) -> tuple[tuple, None]:
        weights, memory = state
        update, memory = optimiser.update(jax.grad(loss)(weights, key), memory, weights)
        return (eqx.apply_updates(weights, update), memory), None

    keys = jax.random.split(jax.random.key(0), steps)
    (weights, _), _ = jax.lax.scan(step, (weights, optimiser.init(weights)), keys)
    return eqx.combine(weights, static)
