"""Pre-training by imitation: where the cost of every proposal is known, there is nothing to estimate."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.random import Generator

from .learner import Learner
from .policy import Graph, Numbers, Policy
from .ppo import SINGLE, Round, Settings, log_chances, optimizer, scores

_KEPT = 300  # rounds that are learned from again
_STEPS = 4  # for each new round
_RATE, _LAST = 0.001, 0.05  # the learning rate at first, and what is left of it


class Example(NamedTuple):
    """A round, the task and the state that it began from, and `(p,)` the share of each proposal in its batch."""

    graph: Graph
    state: Numbers
    data: Round
    shares: Numbers


class Apprentice(Learner):
    """Learns to choose proposals as often as the shares say, from the rounds of all searches.

    Attributes:
      left: the part of the training that is ahead.
    """

    def __init__(self, policy: Policy, rng: Generator) -> None:
        super().__init__(policy, Settings(0.0, 0.0), 0.0)
        self._examples: deque[Example] = deque(maxlen=_KEPT)
        self._rng, self.left = rng, 1.0

    def imitate(self, example: Example) -> None:
        """Take in a round, and improve the policy by it and by earlier ones."""
        self._examples.append(example)
        rate = np.float32(_RATE * max(_LAST, self.left))
        for i in (*self._rng.integers(0, len(self._examples), _STEPS - 1), -1):
            self.policy, self._memory = _step(self.policy, self._memory, self._examples[i], rate)


def divergence(scores: Array, data: Round, shares: Numbers) -> Array:
    """Return the cross-entropy between shares and policy, mean over batches (as ListNet, Cao et al. 2007)."""
    return -(shares * log_chances(scores, data)).sum() / jnp.maximum(shares.sum(), 1e-9)


@partial(jax.jit, compiler_options=SINGLE)
def _step(policy: Policy, memory: optax.OptState, example: Example, rate: Array) -> tuple[Policy, optax.OptState]:
    graph, state, data, shares = example

    def loss(policy: Policy) -> Array:
        return divergence(scores(policy(graph, jnp.asarray(state)), policy.facts, policy.bound, data), data, shares)

    updates, memory = optimizer().update(eqx.filter_grad(loss)(policy), memory)
    return eqx.apply_updates(policy, jax.tree.map(lambda u: -rate * u, updates)), memory
