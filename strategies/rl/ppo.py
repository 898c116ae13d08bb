"""Proximal policy optimization (Schulman et al. 2017) of a policy that chooses among proposals."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from .policy import Graph, Numbers, Policy

SINGLE = {"xla_cpu_multi_thread_eigen": False}  # a run has one thread, and repeats exactly


class Round(NamedTuple):
    """What was proposed and chosen in some batches, padded.

    Attributes:
      proposal, new, old: `(e,)` of each value that a proposal sets; see `Proposals`.
      facts: `(p, FACTS)` of each proposal, `(p,)` of `open`: could it be chosen?
      batch: `(p,)` in which batch it was proposed.
      chosen: `(n,)` numbers of the proposals that were evaluated, `(n,)` of `weight` is 0 for padding.
      logs, advantage: `(n,)` log-probability when it was chosen, and what came of it.
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
    """Of the objective: clipping range, weight of entropy."""

    clip: float
    entropy: float


def scores(worth: Array, weights: Array, bound: float, data: Round) -> Array:
    """Return `(p,)` scores of the proposals; see `Proposals.scores`."""
    p = len(data.facts)
    total = jax.ops.segment_sum(worth[data.new] - worth[data.old], data.proposal, p)
    length = jax.ops.segment_sum(jnp.ones(len(data.new)), data.proposal, p)
    return bound * jnp.tanh((total / jnp.sqrt(jnp.maximum(length, 1)) + data.facts @ weights) / bound)


def log_chances(scores: Array, data: Round) -> Array:
    """Return `(p,)` log-probabilities of the proposals, each in its batch."""
    n = len(data.chosen)
    masked = jnp.where(data.open, scores, -1e9)
    masked = masked - jax.ops.segment_max(masked, data.batch, n + 1)[data.batch]
    return masked - jnp.log(jax.ops.segment_sum(jnp.exp(masked), data.batch, n + 1))[data.batch]


def objective(scores: Array, data: Round, settings: Settings) -> Array:
    """Return the loss of a policy by its `(p,)` scores.

    The clipped surrogate (equation 7) with an entropy bonus (equation 9), means over choices and over batches.
    """
    logs = log_chances(scores, data)
    ratio = jnp.exp(logs[data.chosen] - data.logs)
    clipped = jnp.clip(ratio, 1 - settings.clip, 1 + settings.clip)
    surrogate = data.weight * jnp.minimum(ratio * data.advantage, clipped * data.advantage)
    chances = jnp.where(data.open, jnp.exp(logs), 0)
    entropy = -(chances * logs).sum() / jnp.maximum(chances.sum(), 1)
    return -surrogate.sum() / jnp.maximum(data.weight.sum(), 1) - settings.entropy * entropy


@partial(jax.jit, compiler_options=SINGLE)
def decide(policy: Policy, graph: Graph, state: Array) -> Array:
    """Return what the policy makes of a state; see `Policy.__call__`."""
    return policy(graph, state)


@partial(jax.jit, compiler_options=SINGLE)
def improve(
    policy: Policy,
    memory: optax.OptState,
    graph: Graph,
    state: Array,
    data: Round,
    settings: Settings,
    rate: Array,
) -> tuple[Policy, optax.OptState]:
    """Return the policy and the optimizer's memory after a step of Adam on one round."""

    def loss(policy: Policy) -> Array:
        return objective(scores(policy(graph, state), policy.facts, policy.bound, data), data, settings)

    updates, memory = optimizer().update(eqx.filter_grad(loss)(policy), memory)
    return eqx.apply_updates(policy, jax.tree.map(lambda u: -rate * u, updates)), memory


def optimizer() -> optax.GradientTransformation:
    """Return Adam on clipped gradients; the learning rate comes after it."""
    return optax.flatten(optax.chain(optax.clip_by_global_norm(0.5), optax.scale_by_adam()))
