"""Pre-training by imitation: a policy learns to prefer the values of the best candidates of other problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.random import Generator

from .demonstrations import Demonstration
from .policy import Policy
from .ppo import ONE_THREAD, optimizer

_TURNS, _STEPS = 40, 400  # least number of steps on each demonstration, and on all
_RATE = 0.002  # the first learning rate; it falls to 0 as half a cosine


def imitate(
    policy: Policy, shown: Sequence[Demonstration], rng: Generator, progress: Callable[[float], None]
) -> Policy:
    """Return the policy after training on demonstrations in random order.

    Args:
      progress: called with the loss of each turn of all demonstrations.
    """
    state, turns = optimizer().init(policy), max(_TURNS, -(-_STEPS // len(shown)))
    for turn in range(turns):
        rate, losses = np.float32(_RATE * np.cos(turn / turns * np.pi / 2) ** 2), []
        for i in rng.permutation(len(shown)):
            policy, state, loss = _step(policy, state, shown[i], rate)
            losses.append(float(loss))
        progress(float(np.mean(losses)))
    return policy


def regret(preferences: Array, shown: Demonstration) -> Array:
    """Return the weighted mean of `log(1 + exp(preference - preference of the best value))`.

    This is the convex bound of what a wrong choice costs, as in learning to search (Ross and Bagnell 2014, AggreVaTe).
    """
    losses = jax.nn.softplus(preferences - preferences[shown.best])
    return (losses * shown.weights).sum() / jnp.maximum(jnp.asarray(shown.weights).sum(), 1e-9)


@partial(jax.jit, compiler_options=ONE_THREAD)
def _step(
    policy: Policy, optimizer_state: optax.OptState, shown: Demonstration, rate: Array
) -> tuple[Policy, optax.OptState, Array]:
    def loss(policy: Policy) -> Array:
        return regret(policy(shown.graph, jnp.asarray(shown.state)), shown)

    value, gradient = eqx.filter_value_and_grad(loss)(policy)
    updates, optimizer_state = optimizer().update(gradient, optimizer_state)
    return eqx.apply_updates(policy, jax.tree.map(lambda u: -rate * u, updates)), optimizer_state, value
