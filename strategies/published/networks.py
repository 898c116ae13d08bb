"""The networks of two published systems: a policy that is trained by PPO, and one that predicts gains by Q-learning."""

from __future__ import annotations

import math
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.nets import Weights, clipped_objective, jit, new_weights, perceptron

_PPO_BATCH, _PPO_HIDDEN = 32, (64, 64)
_ACTIONS = 3
"""Of the policy, for each parameter."""
_BATCH, _BATCHES = 32, 31
_HIDDEN = (64, 64, 64)


class Settings(Protocol):
    """What an update needs to know; see the options of `published:chameleon`."""

    rate: float
    discount: float
    trace: float
    clip: float
    entropy: float
    epochs: int


class Ppo:
    """A policy and a value of states, each a small network.

    Args:
      width: the length of a state.
      parameters: the number of parameters that the policy steps.
      settings: of the updates.
      seed: of the first weights.
    """

    def __init__(self, width: int, parameters: int, settings: Any, seed: int) -> None:  # noqa: ANN401 - `Settings`
        policy = new_weights((width, *_PPO_HIDDEN, _ACTIONS * parameters), seed)
        self._networks = policy, new_weights((width, *_PPO_HIDDEN, 1), seed + 1)
        self._settings, self._memory = settings, optax.adam(settings.rate).init(self._networks)

    def draw(self, states: NDArray[np.float32], rng: Generator) -> NDArray[np.int64]:
        """Return `(n, m)` actions in `(n, d)` states: 0, 1 or 2 for each parameter."""
        logits = np.asarray(_logits_of(self._networks[0], states))
        return (logits + rng.gumbel(size=logits.shape)).argmax(axis=2)

    def learn(
        self,
        states: NDArray[np.float32],
        actions: NDArray,
        rewards: NDArray[np.float64],
        walking: NDArray[np.bool_],
        last: NDArray[np.float32],
        rng: Generator,
    ) -> None:
        """Update policy and value by `(t, n)` steps of n walks.

        Args:
          states: `(t, n, d)` before each step.
          actions: `(t, n, m)`.
          rewards: `(t, n)` after each step.
          walking: `(t + 1, n)` whether the walk goes on; steps of walks that have ended are ignored.
          last: `(n, d)` the states in the end.
          rng: shuffles the steps.
        """
        values = np.asarray(_values_of(self._networks[1], np.concatenate([states, last[None]])), np.float64)
        advantages = _advantages(rewards, values, walking, self._settings)
        known = walking[:-1].ravel()
        wanted = (advantages + values[:-1]).ravel()
        gains = advantages.ravel()
        gains = (gains - gains[known].mean()) / (gains[known].std() + 1e-8)
        flat_states, flat_actions = states.reshape(len(known), -1), actions.reshape(len(known), actions.shape[2])
        old = np.asarray(_chances(self._networks[0], flat_states, flat_actions))
        data = (flat_states, flat_actions, old, gains.astype(np.float32), wanted.astype(np.float32))
        places = np.flatnonzero(known)
        for _ in range(self._settings.epochs):
            order = rng.permutation(places)
            for batch in np.resize(order, (-(-len(order) // _PPO_BATCH), _PPO_BATCH)):
                self._update(tuple(array[batch] for array in data))

    def _update(self, batch: tuple[NDArray, ...]) -> None:
        o = self._settings
        self._networks, self._memory = _improved(self._networks, self._memory, batch, o.rate, o.clip, o.entropy)


def _advantages(
    rewards: NDArray[np.float64], values: NDArray[np.float64], walking: NDArray[np.bool_], settings: Settings
) -> NDArray[np.float64]:
    """Return `(t, n)` generalised advantage estimates (Schulman et al. 2016)."""
    advantages, following = np.zeros(rewards.shape), np.zeros(rewards.shape[1])
    for t in range(len(rewards) - 1, -1, -1):
        error = rewards[t] + settings.discount * values[t + 1] * walking[t + 1] - values[t]
        following = error + settings.discount * settings.trace * following * walking[t + 1]
        advantages[t] = following
    return advantages


def _logits(policy: Weights, states: jax.Array) -> jax.Array:
    """Return the `(n, m, 3)` logarithms of chances, up to a constant."""
    return perceptron(policy, states).reshape(len(states), -1, _ACTIONS)


def _values(value: Weights, states: jax.Array) -> jax.Array:
    return perceptron(value, states)[..., 0]


_logits_of, _values_of = jit(_logits), jit(_values)


@jit
def _chances(policy: Weights, states: jax.Array, actions: jax.Array) -> jax.Array:
    """Return the `(n,)` logarithms of the chances of actions."""
    return _chosen(jax.nn.log_softmax(_logits(policy, states)), actions)


def _chosen(logs: jax.Array, actions: jax.Array) -> jax.Array:
    return jnp.take_along_axis(logs, actions[:, :, None].astype(int), axis=2)[:, :, 0].sum(axis=1)


@jit
def _improved(networks: Any, memory: Any, batch: Any, rate: float, clip: float, entropy: float) -> Any:  # noqa: ANN401 - trees
    """Return the policy and the value, and the memory of the optimizer, after a batch."""
    states, actions, old, gains, wanted = batch

    def loss(networks: tuple[Weights, Weights]) -> jax.Array:
        logs = jax.nn.log_softmax(_logits(networks[0], states))
        gained = clipped_objective(_chosen(logs, actions), old, gains, clip).mean()
        spread = -(jnp.exp(logs) * logs).sum(axis=2).mean()
        return -gained - entropy * spread + ((_values(networks[1], states) - wanted) ** 2).mean()

    updates, memory = optax.adam(rate).update(jax.grad(loss)(networks), memory)
    return optax.apply_updates(networks, updates), memory


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


_outputs = jit(perceptron)


@jit
def _trained(weights: Weights, target: Weights, memory: Any, batches: Any, rate: float, discount: float) -> Any:  # noqa: ANN401 - trees
    """Return the weights, and the memory of the optimizer, after `(b, 32, ...)` batches."""

    def loss(weights: Weights, batch: Any) -> jax.Array:  # noqa: ANN401
        states, actions, after, rewards = batch
        wanted = rewards + discount * perceptron(target, after).max(axis=1)
        chosen = jnp.take_along_axis(perceptron(weights, states), actions[:, None], axis=1)[:, 0]
        return jnp.sum((chosen - wanted) ** 2)

    def step(carry: Any, batch: Any) -> Any:  # noqa: ANN401
        weights, memory = carry
        updates, memory = optax.adadelta(rate).update(jax.grad(loss)(weights, batch), memory, weights)
        return (optax.apply_updates(weights, updates), memory), None

    carry, _ = jax.lax.scan(step, (weights, memory), batches)
    return carry
