"""Proximal policy optimization (Schulman et al. 2017) of a policy that chooses among proposals."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from .policy import GraphInputs, Numbers, Policy

ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}  # with one thread a run repeats exactly


class Rollout(NamedTuple):
    """The proposals of some batches and the choices among them, padded.

    Attributes:
      proposal, new, old: `(e,)` one entry for each value that a proposal sets; see `Proposals`.
      facts: `(p, FACTS)` numbers that describe each proposal as a whole.
      open: `(p,)` true if the proposal could be chosen.
      batch: `(p,)` the batch of each proposal.
      chosen: `(n,)` the proposals that were evaluated.
      weight: `(n,)` 1 for each choice, 0 for padding.
      logs: `(n,)` log-probability of each choice when it was made.
      advantage: `(n,)` standardised reward of each choice.
    """

    proposal: Numbers
    new: Numbers
    old: Numbers
    facts: Numbers
    open: Numbers
    batch: Numbers
    chosen: Numbers
    weight: Numbers
    logs: Numbers
    advantage: Numbers


class Settings(NamedTuple):
    """Settings of the objective: the clipping range and the weight of the entropy."""

    clip: float
    entropy: float


def scores(preferences: Array, weights: Array, bound: float, data: Rollout) -> Array:
    """Return `(p,)` scores of the proposals; see `Proposals.scores`."""
    p = len(data.facts)
    total = jax.ops.segment_sum(preferences[data.new] - preferences[data.old], data.proposal, p)
    length = jax.ops.segment_sum(jnp.ones(len(data.new)), data.proposal, p)
    return bound * jnp.tanh((total / jnp.sqrt(jnp.maximum(length, 1)) + data.facts @ weights) / bound)


def log_chances(scores: Array, data: Rollout) -> Array:
    """Return the `(p,)` log-probability of each proposal among those of its batch."""
    n = len(data.chosen)
    masked = jnp.where(data.open, scores, -1e9)
    masked = masked - jax.ops.segment_max(masked, data.batch, n + 1)[data.batch]
    return masked - jnp.log(jax.ops.segment_sum(jnp.exp(masked), data.batch, n + 1))[data.batch]


def objective(scores: Array, data: Rollout, settings: Settings) -> Array:
    """Return the loss of a policy, given its `(p,)` scores.

    The clipped surrogate (equation 7), mean over choices, with an entropy bonus (equation 9), mean over batches.
    """
    logs = log_chances(scores, data)
    ratio = jnp.exp(logs[data.chosen] - data.logs)
    clipped = jnp.clip(ratio, 1 - settings.clip, 1 + settings.clip)
    surrogate = data.weight * jnp.minimum(ratio * data.advantage, clipped * data.advantage)
    chances = jnp.where(data.open, jnp.exp(logs), 0)
    entropy = -(chances * logs).sum() / jnp.maximum(chances.sum(), 1)
    return -surrogate.sum() / jnp.maximum(data.weight.sum(), 1) - settings.entropy * entropy


@partial(jax.jit, compiler_options=ONE_THREAD)
def decide(policy: Policy, graph: GraphInputs, state: Array) -> Array:
    """Return the `(c,)` preferences of the policy in a state; see `Policy.__call__`."""
    return policy(graph, state)


@partial(jax.jit, compiler_options=ONE_THREAD)
def improve(
    policy: Policy,
    optimizer_state: optax.OptState,
    graph: GraphInputs,
    state: Array,
    data: Rollout,
    settings: Settings,
    rate: Array,
) -> tuple[Policy, optax.OptState]:
    """Return the policy and the optimizer's state after a step of Adam on one rollout."""

    def loss(policy: Policy) -> Array:
        return objective(scores(policy(graph, state), policy.facts, policy.bound, data), data, settings)

    updates, optimizer_state = optimizer().update(eqx.filter_grad(loss)(policy), optimizer_state)
    return eqx.apply_updates(policy, jax.tree.map(lambda u: -rate * u, updates)), optimizer_state


def optimizer() -> optax.GradientTransformation:
    """Return Adam on clipped gradients, without a learning rate; the caller applies it."""
    return optax.flatten(optax.chain(optax.clip_by_global_norm(0.5), optax.scale_by_adam()))
