"""How a policy learns to choose among proposals: by PPO (Schulman et al. 2017) on its own task, or before by imitation.

The agent chooses changes of a state for one task, and learns from what they cost. A demonstration is what a long local
search found on a training problem, and what each other value costs there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike
from jaxtyping import Array
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite import Evaluations, Moves, Task
from bbo_suite.loop import drive
from bbo_suite.nets import clipped_objective, jit, padded
from bbo_suite.pretraining import Lesson

from ..annealing import Neighbours
from ..changes import AdaptiveMutation
from ..local import LocalOptions, LocalSearch
from .policy import GraphInputs, Names, Numbers, Policy, graph_inputs, observed
from .proposals import GroupTests, ParameterValues, Proposals, VisitedSet, draw, log_softmax, proposals_of

_SLACK = 32
_ENTRIES = 8  # entries of each proposal at first; doubled until all fit
_BAD = 0.3  # reward of a loss of the usual size, negated: most changes lose, and finding those that gain matters more
_LEAST = 5e-324  # a cost of 0 counts as the smallest number above it


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
    surrogate = data.weight * clipped_objective(logs[data.chosen], data.logs, data.advantage, settings.clip)
    chances = jnp.where(data.open, jnp.exp(logs), 0)
    entropy = -(chances * logs).sum() / jnp.maximum(chances.sum(), 1)
    return -surrogate.sum() / jnp.maximum(data.weight.sum(), 1) - settings.entropy * entropy


@jit
def decide(policy: Policy, graph: GraphInputs, state: Array) -> Array:
    """Return the `(c,)` preferences of the policy in a state; see `Policy.__call__`."""
    return policy(graph, state)


@jit
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


class Learner:
    """Trains a policy by PPO; several searches may share it, one after the other.

    Args:
      policy: the policy to start from.
      settings: settings of the objective.
      rate: the learning rate; 0: the policy does not change.
    """

    def __init__(self, policy: Policy, settings: Settings, rate: float) -> None:
        self.policy = policy
        self._optimizer_state: optax.OptState = optimizer().init(policy)
        self._settings, self._rate = settings, np.float32(rate)

    def decide(self, graph: GraphInputs, state: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return the `(c,)` preferences for the values and the `(FACTS,)` weights of the facts."""
        return np.asarray(decide(self.policy, graph, state)), np.asarray(self.policy.facts)

    def learn(self, graph: GraphInputs, state: ArrayLike, data: Rollout) -> None:
        """Improve the policy by one rollout, given the state that the policy saw."""
        if self._rate:
            arguments = (graph, state, data, self._settings, self._rate)
            self.policy, self._optimizer_state = improve(self.policy, self._optimizer_state, *arguments)


class RolloutBuffer:
    """The proposals, choices and rewards since the policy last learned."""

    def __init__(self) -> None:
        self._proposals: list[Proposals] = []
        self._chosen: list[NDArray[np.int64]] = []
        self._logs: list[NDArray[np.float64]] = []
        self.rewards: list[NDArray[np.float64]] = []
        self.count = 0

    def add(self, proposals: Proposals, chosen: NDArray[np.int64], logs: NDArray[np.float64]) -> None:
        """Add the proposals of a batch, the `(n,)` chosen ones, and their log-probabilities."""
        self._proposals.append(proposals)
        self._chosen.append(chosen)
        self._logs.append(logs)

    def reward(self, rewards: NDArray[np.float64]) -> None:
        """Add the `(n,)` rewards of the last batch."""
        self.rewards.append(rewards)
        self.count += len(rewards)

    def shares(self) -> tuple[NDArray, NDArray, NDArray]:
        """Return for all values that were tried: place, reward of the proposal, and 1 / how many values it set."""
        parts = []
        for proposals, chosen, rewards in zip(self._proposals, self._chosen, self.rewards, strict=True):
            k = len(proposals.open)
            lengths = np.maximum(np.bincount(proposals.proposal, minlength=k), 1)
            reward = np.full(k, np.nan)
            reward[chosen] = rewards
            tried = ~np.isnan(reward[proposals.proposal])
            of = proposals.proposal[tried]
            parts.append((proposals.new[tried], reward[of], 1 / lengths[of]))
        new, reward, share = (np.concatenate(part) for part in zip(*parts, strict=True))
        return new, reward, share

    def rollout(self, size: int) -> Rollout:
        """Return the rollout; its advantages have mean 0 and variance 1, or are all 0."""
        counts = [len(p.open) for p in self._proposals]
        starts = np.cumsum([0, *counts[:-1]])
        n = size + _SLACK
        p = n * max(1, round(sum(counts) / max(1, self.count))) + 1
        shifted = ((q.proposal + s, q.new, q.old) for q, s in zip(self._proposals, starts, strict=True))
        entries = [np.concatenate(parts) for parts in zip(*shifted, strict=True)]
        e = p * _ENTRIES
        while e < len(entries[0]):
            e *= 2
        reward = np.concatenate(self.rewards)
        advantage = (reward - reward.mean()) / (reward.std() or 1.0)
        chosen = np.concatenate([c + s for c, s in zip(self._chosen, starts, strict=True)])
        return Rollout(
            padded(entries[0], e, p - 1),
            padded(entries[1], e, 0),
            padded(entries[2], e, 0),
            padded(np.concatenate([q.facts for q in self._proposals]), p, 0),
            padded(np.concatenate([q.open for q in self._proposals]), p, False),
            padded(np.repeat(np.arange(len(counts)), counts), p, n),
            padded(chosen, n, p - 1),
            padded(np.ones(len(chosen), np.float32), n, 0),
            padded(np.concatenate(self._logs), n, 0).astype(np.float32),
            padded(advantage, n, 0).astype(np.float32),
        )


class Rewards:
    """Turns costs into rewards: logarithms of speedups over the state, in units of their running medians.

    Gains and losses have separate units, and losses count less: most changes lose, and a policy that is rewarded for
    avoiding the worst learns to change nothing that matters. For the same reason a candidate with exactly the cost of
    the state counts as a usual loss. The inverse hyperbolic sine compresses large rewards, so that neither outliers
    nor units matter. A failure is a large loss.
    """

    def __init__(self) -> None:
        self._gain = self._loss = 0.0

    def __call__(self, values: NDArray[np.float64], state: float) -> NDArray[np.float64]:
        """Return `(n,)` rewards of the costs of changes of a state, given its own cost."""
        good = np.isfinite(values)
        if not np.isfinite(state):
            return np.where(good, 1.0, -1.0)
        known = np.where(good, values, state)
        gains = np.log(max(state, _LEAST)) - np.log(np.maximum(known, _LEAST))
        self._gain = _running(self._gain, gains[gains > 0])
        self._loss = _running(self._loss, -gains[gains < 0])
        losses = np.where(gains == 0, 1.0, -gains / (self._loss or 1.0))
        losses = np.where(good, np.minimum(np.arcsinh(losses), 3.0), 3.0)
        return np.where(gains > 0, 1 + np.arcsinh(gains / (self._gain or 1.0)), -_BAD * losses)


def _running(scale: float, sizes: NDArray[np.float64]) -> float:
    """Return the running median of positive sizes."""
    if not len(sizes):
        return scale
    now = float(np.median(sizes))
    return 0.8 * scale + 0.2 * now if scale else now


_PROPOSED = 12  # proposals for each candidate
_FORGETTING = 0.98  # factor for what is known of each value, after each rollout
_ROLLOUTS = 2  # number of rollouts that are learned from repeatedly
_TOGETHER = 4  # groups that are tested at once: more would know less of earlier ones


class Agent(Neighbours):
    """Changes that a policy chooses among random ones; before that, groups of changes, if there are any to test.

    Args:
      task: the task to search.
      names: of the features that the policy takes.
      learner: holds the policy.
      mutation: draws the proposals.
      size: candidates of a rollout; after each the policy learns and sees the new state.
      epochs: steps on each rollout.
      patience: the tests of groups end after so many in a row that do not pay; 0: none are made.
      rng: the only source of randomness.

    Attributes:
      mean: mean reward of the last rollout.
      spread: standard deviation of the last scores.
    """

    def __init__(
        self,
        task: Task,
        names: Names,
        learner: Learner,
        mutation: AdaptiveMutation,
        size: int,
        epochs: int,
        patience: int,
        rng: Generator,
    ) -> None:
        super().__init__()
        self._task, self._learner, self._mutation, self._rng = task, learner, mutation, rng
        self._size, self._epochs = size, epochs
        self._movable, self._values = Moves(task.space).movable, ParameterValues(task.space)
        self._graph = graph_inputs(task, self._values, names)
        self._tries, self._mean_reward = np.zeros(len(self._values)), np.zeros(len(self._values))
        self._rewards, self._visited = Rewards(), VisitedSet(len(task.space), rng)
        self._rollouts: deque[tuple[NDArray, Rollout]] = deque(maxlen=_ROLLOUTS)
        self._buffer = RolloutBuffer()
        self._operators = np.zeros(0, np.int64)  # of the changes that were chosen last
        self._tests = self._group_tests(patience) if patience else None
        self.mean, self.spread = 0.0, 0.0

    def _group_tests(self, patience: int) -> GroupTests:
        """Return tests of what the policy prefers to the default; see `GroupTests`."""
        seen = observed(self._task, self._values, len(self._graph.value))
        return GroupTests.preferred(self._task, self._values, self._learner.decide(self._graph, seen)[0], patience)

    def draw(self, state: NDArray, n: int) -> NDArray:
        """Return `n` changes of a state; fewer while groups are tested."""
        self._operators = np.zeros(0, np.int64)
        if not n:
            return state[None][:0]
        if self._tests is not None and len(groups := self._tests.draw(state, min(n, _TOGETHER))):
            return groups
        self._tests = None
        return self._choose(state, n)

    def _choose(self, state: NDArray, n: int) -> NDArray:
        """Return the `(n, d)` changes of a state that the policy draws."""
        if not self._buffer.count:
            self._observe(state)
        k = n * _PROPOSED
        configs, operators = self._mutated(state, k)
        self._visited.add(self._visited.keys(state[None], state))
        keys = self._visited.keys(configs, state)
        new = self._visited.new(keys)
        is_open = new if new.sum() >= n else np.ones(k, bool)  # near the end of a small space
        proposals = proposals_of(configs, state, operators, is_open, self._values)
        scores = proposals.scores(self._preferences, self._weights, self._learner.policy.bound)
        logs = log_softmax(scores, is_open)
        chosen = draw(logs, n, self._rng)
        self.spread = float(scores.std())
        self._buffer.add(proposals, chosen, logs[chosen])
        self._visited.add(keys[chosen])
        self._operators = operators[chosen]
        return configs[chosen]

    def _mutated(self, state: NDArray, k: int) -> tuple[NDArray, NDArray[np.int64]]:
        """Return `(k, d)` random changes of a state, and their operators."""
        configs = np.repeat(state[None], k, axis=0)
        columns = self._movable[self._rng.integers(0, len(self._movable), k)]
        return configs, self._mutation.change(configs, np.arange(k), columns)

    def _observe(self, state: NDArray) -> None:
        """Show the state to the policy, once for all candidates of the rollout."""
        statistics = np.column_stack([np.log1p(self._tries), self._mean_reward])
        self._observed = observed(self._task, self._values, len(self._graph.value), state, statistics)
        self._preferences, self._weights = self._learner.decide(self._graph, self._observed)

    def learn(self, state: NDArray, cost: float, configs: NDArray, values: NDArray[np.float64]) -> None:
        """Learn which groups pay; else which changes pay, which operators, and how much costs differ."""
        if self._tests is not None:  # no temperature is taken from their costs: only groups that pay are accepted
            self._tests.learn(cost, values)
        elif len(values):
            self._improve(values, cost)
            self._mutation.learn(self._operators, values < cost)
            self.compare(cost, values)

    def _improve(self, values: NDArray[np.float64], cost: float) -> None:
        """Let the policy learn the `(n,)` costs of the changes that were chosen last, given that of the state."""
        self._buffer.reward(self._rewards(values, cost))
        if self._buffer.count < self._size:
            return
        data = self._buffer.rollout(self._size)
        self.mean = float(np.concatenate(self._buffer.rewards).mean())
        self._remember(self._buffer)
        self._buffer = RolloutBuffer()
        if np.any(data.advantage):  # else no choice was better than another
            self._rollouts.append((self._observed, data))
            for _ in range(self._epochs):
                for i in self._rng.permutation(len(self._rollouts)):
                    self._learner.learn(self._graph, *self._rollouts[i])

    def _remember(self, buffer: RolloutBuffer) -> None:
        """Update the number of tries and the mean reward of each value."""
        new, reward, weight = buffer.shares()
        tries = np.bincount(new, weight, len(self._tries))
        total = np.bincount(new, weight * reward, len(self._tries))
        self._tries *= _FORGETTING
        mean = (self._tries * self._mean_reward + total) / np.maximum(self._tries + tries, 1e-9)
        self._mean_reward = np.where(tries > 0, mean, self._mean_reward)
        self._tries += tries


_BATCH = 100
_MOST, _FEWEST = 0.03, 0.003  # bounds of weights: few values must not decide, and no value is worth nothing
_TURNS, _STEPS = 40, 400  # least number of steps on each demonstration, and on all
_RATE = 0.002  # the first learning rate; it falls to 0 as half a cosine


class Demonstration(NamedTuple):
    """A task in its default state, and what a policy should prefer there.

    Attributes:
      graph: the task.
      state: `(c, STATE)` numbers of each value.
      best: `(c,)` the place of the value that the best candidate gives to the same parameter.
      weights: `(c,)` how much that one is to be preferred to each value; 0 where it is not known, and for padding.
    """

    graph: GraphInputs
    state: Numbers
    best: Numbers
    weights: Numbers


def demonstrate(lesson: Lesson, names: Names, budget: int, rng: Generator) -> Demonstration | None:
    """Search, measure single changes of the best candidate, and return both; None if nothing better was found.

    Half of the budget is for the search. A change that costs as much as the whole search gained would weigh 1; weights
    are cut at 0.03.
    """
    best, cost = _searched(lesson, budget // 2, rng)
    if not cost < lesson.default:
        return None
    task, values = lesson.task, ParameterValues(lesson.task.space)
    places = _measured_places(values, best, task.default, budget // 2, rng)
    losses = (_costs(lesson, best, values, places) - cost) / (lesson.default - cost)
    weights = np.zeros(len(values), np.float32)
    weights[places] = np.clip(losses, 0, _MOST) + _FEWEST
    graph = graph_inputs(task, values, names)
    c = len(graph.value)
    wanted = values.places(values.parameter, best[values.parameter]).astype(np.int32)
    return Demonstration(graph, observed(task, values, c), padded(wanted, c), padded(weights, c))


def _searched(lesson: Lesson, budget: int, rng: Generator) -> tuple[NDArray, float]:
    """Return the best candidate of a local search, and its cost."""
    search, best, cost = LocalSearch(lesson.task, budget, rng, LocalOptions()), lesson.task.default, np.inf
    for batch in drive(search, lambda configs, _: Evaluations.of(lesson.evaluate(configs)), _BATCH):
        if batch.values.min() < cost:
            best, cost = batch.configs[batch.values.argmin()], float(batch.values.min())
    return best, cost


def _measured_places(
    values: ParameterValues, best: NDArray, default: NDArray, most: int, rng: Generator
) -> NDArray[np.int64]:
    """Return the places of values other than the best candidate's: first the default's, then random ones."""
    own = values.places(values.parameter, best[values.parameter])
    usual = values.places(values.parameter, default[values.parameter])
    all_places = np.arange(len(values))
    others = rng.permutation(all_places[all_places != own])
    is_usual = usual[others] == others
    return np.concatenate([others[is_usual & (usual != own)[others]], others[~is_usual]])[:most]


def _costs(lesson: Lesson, best: NDArray, values: ParameterValues, places: NDArray) -> NDArray[np.float64]:
    """Return what the best candidate costs with each value of `(k,)` places in place of its own."""
    found = [np.empty(0)]
    for at in range(0, len(places), _BATCH):
        some = places[at : at + _BATCH]
        rows = np.repeat(best[None], len(some), axis=0)
        rows[np.arange(len(some)), values.parameter[some]] = values.index(some)
        found.append(lesson.evaluate(rows))
    return np.concatenate(found)


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


@jit
def _step(
    policy: Policy, optimizer_state: optax.OptState, shown: Demonstration, rate: Array
) -> tuple[Policy, optax.OptState, Array]:
    def loss(policy: Policy) -> Array:
        return regret(policy(shown.graph, jnp.asarray(shown.state)), shown)

    value, gradient = eqx.filter_value_and_grad(loss)(policy)
    updates, optimizer_state = optimizer().update(gradient, optimizer_state)
    return eqx.apply_updates(policy, jax.tree.map(lambda u: -rate * u, updates)), optimizer_state, value
