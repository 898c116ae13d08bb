"""Deep Q-learning with prioritised replay (Mnih et al. 2015, Schaul et al. 2016, van Hasselt et al. 2016)."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.random import Generator
from numpy.typing import NDArray

from .policy import Policy

_WIDTH, _RATE, _BATCH = 128, 5e-4, 64
_FIRST, _EVERY = 500, 200
"""Steps before the first update, and steps after which the target network is set anew."""
_PRIORITY, _CORRECTION = 0.6, 0.4
"""The exponent of priorities, and where that of the weights that correct for them starts; it ends at 1 (Schaul)."""
_LEAST_ERROR = 1e-4
_SCALE = 30.0
"""Rewards count as often, so that what a pass usually saves is near 1."""
_RANDOM = 0.05
"""Share of random actions from half of the steps on; it falls to this from 1."""
_TEMPERATURE = 0.05
"""Of the probabilities that a beam search sees."""


class _Steps(NamedTuple):
    """Steps of episodes, as arrays of numpy or JAX.

    Attributes:
      before, after: `(n, width)` observations.
      action, reward, ended: `(n,)`.
    """

    before: Any
    action: Any
    reward: Any
    after: Any
    ended: Any


class Replay:
    """All steps so far, drawn in proportion to a power of their last error."""

    def __init__(self, size: int, width: int) -> None:
        seen = np.empty((2, size, width), np.float32)
        self._steps = _Steps(seen[0], np.empty(size, int), np.empty(size, np.float32), seen[1], np.empty(size, bool))
        self._priorities, self._count = np.zeros(size), 0

    def add(self, *step: object) -> None:
        """Keep a step, which gets the highest priority so far."""
        for column, value in zip(self._steps, step, strict=True):
            column[self._count] = value
        self._priorities[self._count] = self._priorities.max(initial=0.0) or 1.0
        self._count += 1

    def draw(self, n: int, correction: float, rng: Generator) -> tuple[NDArray[np.int64], NDArray, _Steps]:
        """Return places, weights that make up for the priorities, and the steps themselves."""
        chances = self._priorities[: self._count] / self._priorities[: self._count].sum()
        places = rng.choice(self._count, n, p=chances)
        weights = (self._count * chances[places]) ** -correction
        return places, weights / weights.max(), _Steps(*(column[places] for column in self._steps))

    def found(self, places: NDArray[np.int64], errors: NDArray) -> None:
        """Set the priorities of drawn steps by their errors."""
        self._priorities[places] = (np.abs(errors) + _LEAST_ERROR) ** _PRIORITY


def q_learning(env: Any, steps: int, seed: int) -> Policy:  # noqa: ANN401 - gymnasium is an extra
    """Return the policy of a double Q-network that learned from an environment.

    Its best action is that of the highest value. Rewards are not discounted, since episodes are short.

    Args:
      steps: actions of all episodes together.
      seed: of weights, episodes and random actions.
    """
    learner, (seen, _) = _Learner(env, steps, seed), env.reset(seed=seed)
    for step in range(steps):
        action = learner.action(seen, step / steps)
        after, reward, ended, _, _ = env.step(np.int64(action))
        learner.learn(step, seen, action, _SCALE * float(reward), after, ended)
        seen = env.reset()[0] if ended else after
    return learner.policy


class _Learner:
    """The two networks, and what they have seen."""

    def __init__(self, env: Any, steps: int, seed: int) -> None:  # noqa: ANN401
        self._rng, width = np.random.default_rng(seed), env.observation_space.shape[0]
        self._steps, self._actions = steps, int(env.action_space.n)
        self._network = eqx.nn.MLP(width, self._actions, _WIDTH, 2, key=jax.random.key(seed))
        self._target, self._replay = self._network, Replay(steps, width)
        self._memory = _OPTIMISER.init(eqx.filter(self._network, eqx.is_inexact_array))

    def action(self, seen: NDArray[np.float32], spent: float) -> int:
        """Return a random action, less and less often, or the best."""
        if self._rng.random() < max(_RANDOM, 1 - 2 * spent):
            return int(self._rng.integers(self._actions))
        return int(np.asarray(_values(self._network, np.log1p(seen))).argmax())

    def learn(self, step: int, seen: NDArray, action: int, reward: float, after: NDArray, ended: bool) -> None:
        """Keep a step, and improve the network on steps that are drawn again."""
        self._replay.add(np.log1p(seen), action, reward, np.log1p(after), ended)
        if step >= _FIRST:
            correction = _CORRECTION + (1 - _CORRECTION) * step / self._steps
            places, weights, drawn = self._replay.draw(_BATCH, correction, self._rng)
            given = self._network, self._target, self._memory, jnp.asarray(weights, jnp.float32), drawn
            self._network, self._memory, errors = _improved(*given)
            self._replay.found(places, np.asarray(errors))
        if step % _EVERY == 0:
            self._target = self._network

    def policy(self, seen: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities of all actions, by their values."""
        values = _values(self._network, np.log1p(seen))
        return np.asarray(jax.nn.log_softmax(values / _TEMPERATURE), np.float64)


_OPTIMISER = optax.adam(_RATE)


@eqx.filter_jit
def _values(network: eqx.nn.MLP, x: NDArray[np.float32]) -> Array:
    return network(jnp.asarray(x))


@eqx.filter_jit
def _improved(
    network: eqx.nn.MLP, target: eqx.nn.MLP, memory: optax.OptState, weights: Array, steps: _Steps
) -> tuple[eqx.nn.MLP, optax.OptState, Array]:
    best = jax.vmap(network)(steps.after).argmax(axis=1)  # chosen by one network, valued by the other
    later = jnp.take_along_axis(jax.vmap(target)(steps.after), best[:, None], axis=1)[:, 0]
    wanted = steps.reward + jnp.where(steps.ended, 0, later)

    def loss(network: eqx.nn.MLP) -> tuple[Array, Array]:
        now = jnp.take_along_axis(jax.vmap(network)(steps.before), steps.action[:, None], axis=1)[:, 0]
        return (weights * optax.huber_loss(now, wanted)).mean(), now - wanted

    gradient, errors = eqx.filter_grad(loss, has_aux=True)(network)
    update, memory = _OPTIMISER.update(gradient, memory)
    return eqx.apply_updates(network, update), memory, errors
