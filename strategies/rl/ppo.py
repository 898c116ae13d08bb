"""Proximal policy optimization (Schulman et al. 2017) of a policy whose decisions are draws of changes."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from .policy import Graph, Numbers, Policy

_SINGLE = {"xla_cpu_multi_thread_eigen": False}  # a run has one thread, and repeats exactly


class Round(NamedTuple):
    """What a round of candidates taught, summed over the draws of each change.

    The clipped objective of a draw depends on its change's probability and its advantage alone, and is linear in the
    advantage on either side of zero. So these sums are all that a gradient needs, however many candidates there were.

    Attributes:
      gain, loss: `(c,)` weighted sums of the positive and of the negative advantages.
      draws: `(c,)` sums of the weights.
      worth: `(c,)` mean of what its draws added to the reward.
    """

    gain: Numbers
    loss: Numbers
    draws: Numbers
    worth: Numbers


class Settings(NamedTuple):
    """Of the objective: clipping range, weights of entropy and of the critic's error."""

    clip: float
    entropy: float
    critic: float = 0.5


def objective(logs: Array, worth: Array, old: Array, alive: Array, data: Round, settings: Settings) -> Array:
    """Return the loss of a policy with `(c,)` log-probabilities and expected worths.

    The clipped surrogate (equation 7) with its entropy bonus and value error (equation 9), each a mean over draws.
    """
    ratio, draws = jnp.exp(logs - old), jnp.maximum(data.draws.sum(), 1e-6)
    surrogate = data.gain * jnp.minimum(ratio, 1 + settings.clip) + data.loss * jnp.maximum(ratio, 1 - settings.clip)
    entropy = -jnp.where(alive, jnp.exp(logs) * logs, 0).sum() / jnp.log(jnp.maximum(alive.sum(), 2))
    error = data.draws * (worth - data.worth) ** 2
    return (settings.critic * error - surrogate).sum() / draws - settings.entropy * entropy


@partial(jax.jit, compiler_options=_SINGLE)
def propose(policy: Policy, graph: Graph, state: Array, alive: Array) -> tuple[Array, Array]:
    """Return what the policy makes of a state; see `Policy.__call__`."""
    return policy(graph, state, alive)


@partial(jax.jit, static_argnames="epochs", compiler_options=_SINGLE)
def improve(
    policy: Policy,
    memory: optax.OptState,
    graph: Graph,
    state: Array,
    alive: Array,
    old: Array,
    data: Round,
    settings: Settings,
    rate: Array,
    epochs: int,
) -> tuple[Policy, optax.OptState]:
    """Return the policy and the optimizer's memory after some steps of Adam on one round."""

    def loss(policy: Policy) -> Array:
        logs, worth = policy(graph, state, alive)
        return objective(logs, worth, old, alive, data, settings)

    def step(_: int, carry: tuple[Policy, optax.OptState]) -> tuple[Policy, optax.OptState]:
        policy, memory = carry
        updates, memory = optimizer().update(eqx.filter_grad(loss)(policy), memory)
        return eqx.apply_updates(policy, jax.tree.map(lambda u: -rate * u, updates)), memory

    return jax.lax.fori_loop(0, epochs, step, (policy, memory))


def optimizer() -> optax.GradientTransformation:
    """Return Adam on clipped gradients; the learning rate comes after it."""
    return optax.flatten(optax.chain(optax.clip_by_global_norm(0.5), optax.scale_by_adam()))
