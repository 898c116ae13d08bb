"""Pre-training by imitation: the costs of all proposals are known, so the policy learns to prefer those that gain."""

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
from numpy.typing import NDArray

from bbo_suite.tuning.pretraining import Lesson

from ..mutation import AdaptiveMutation
from .agent import Agent
from .learner import Learner
from .policy import GraphInputs, Numbers, Policy
from .ppo import ONE_THREAD, Rollout, Settings, log_chances, optimizer, scores
from .rollout import filled

_KEPT = 300  # number of rollouts that are learned from repeatedly
_STEPS = 4  # steps of training for each new rollout
_RATE, _LAST = 0.001, 0.05  # the first learning rate, and the last one as a share of it


class Example(NamedTuple):
    """A rollout, the task and the state that it began from, and `(p,)` the share of each proposal in its batch."""

    graph: GraphInputs
    state: Numbers
    data: Rollout
    shares: Numbers


class ImitationLearner(Learner):
    """Learns to choose each proposal with the probability that is its share, from the rollouts of all searches.

    Attributes:
      left: the share of the training that is still to come.
    """

    def __init__(self, policy: Policy, rng: Generator) -> None:
        super().__init__(policy, Settings(0.0, 0.0), 0.0)
        self._examples: deque[Example] = deque(maxlen=_KEPT)
        self._rng, self.left = rng, 1.0

    def imitate(self, example: Example) -> None:
        """Improve the policy by a rollout and by some earlier ones."""
        self._examples.append(example)
        rate = np.float32(_RATE * max(_LAST, self.left))
        for i in (*self._rng.integers(0, len(self._examples), _STEPS - 1), -1):
            self.policy, self._optimizer_state = _step(self.policy, self._optimizer_state, self._examples[i], rate)


class ImitationAgent(Agent):
    """An agent that evaluates all of its proposals and imitates a choice in proportion to what they gain.

    Args:
      learner: shared by all searches.
      lesson: the task and how to evaluate its candidates.
      mutation: draws the proposals.
      size: candidates of a rollout.
      rng: the only source of randomness.
    """

    _learner: ImitationLearner

    def __init__(
        self, learner: ImitationLearner, lesson: Lesson, mutation: AdaptiveMutation, size: int, rng: Generator
    ) -> None:
        super().__init__(lesson.task, learner, mutation, size, 0, rng)
        self._evaluate = lesson.evaluate
        self._shares: list[NDArray[np.float64]] = []

    def _mutated(self, state: NDArray, k: int) -> tuple[NDArray, NDArray[np.int64]]:
        configs, operators = super()._mutated(state, k)
        values = self._evaluate(np.concatenate([state[None], configs]))
        self._shares.append(gain_shares(values[1:], float(values[0])))
        return configs, operators

    def _improve(self, data: Rollout) -> None:
        shares = filled(np.concatenate(self._shares), len(data.open), 0.0) * data.open
        self._shares = []
        if shares.any():
            self._learner.imitate(Example(self._graph, self._observed, data, shares.astype(np.float32)))


def gain_shares(values: NDArray[np.float64], state: float) -> NDArray[np.float64]:
    """Return the `(k,)` share of each change in what all changes of a state gain; all 0 if none gains."""
    gains = np.isfinite(values) if np.isinf(state) else np.maximum(state - values, 0.0)
    return gains / (gains.sum() or 1.0)


def cross_entropy(scores: Array, data: Rollout, shares: Numbers) -> Array:
    """Return the cross-entropy between shares and policy, mean over batches (as ListNet, Cao et al. 2007)."""
    return -(shares * log_chances(scores, data)).sum() / jnp.maximum(shares.sum(), 1e-9)


@partial(jax.jit, compiler_options=ONE_THREAD)
def _step(
    policy: Policy, optimizer_state: optax.OptState, example: Example, rate: Array
) -> tuple[Policy, optax.OptState]:
    graph, state, data, shares = example

    def loss(policy: Policy) -> Array:
        return cross_entropy(scores(policy(graph, jnp.asarray(state)), policy.facts, policy.bound, data), data, shares)

    updates, optimizer_state = optimizer().update(eqx.filter_grad(loss)(policy), optimizer_state)
    return eqx.apply_updates(policy, jax.tree.map(lambda u: -rate * u, updates)), optimizer_state
