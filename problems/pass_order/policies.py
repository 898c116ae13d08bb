"""A policy that chooses the next pass: it imitates the best sequences that searches found, and guides a beam search.

It works on any Gymnasium environment with discrete actions of which action 0 stops, whose `reset(options={"problem":
name})` starts a program, and whose `info["cost"]` is what the passes so far cost; so it knows no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.random import Generator
from numpy.typing import NDArray

from bbo_suite.nets import filter_jit

_LONGEST_DETOUR = 3
_WIDTH, _DROPPED = 128, 0.2
_RATE, _DECAY = 1e-3, 1e-2
_MEMBERS = 4
_SMOOTHING = 0.02
Sequences = Mapping[str, Sequence[int]]
Pairs = tuple[list[Any], NDArray[np.int64]]
Policy = Callable[[Any], NDArray[np.float64]]
"""Takes one observation, returns the logarithms of the probabilities of all actions."""


class Episode(NamedTuple):
    """What playing a sequence has shown.

    Attributes:
      observations: before each of the n actions, and after the last.
      cost: after the last action; infinite if one failed.
      ended: whether no action can follow.
    """

    observations: list[Any]
    cost: float
    ended: bool


def play(env: Any, problem: str, actions: Sequence[int]) -> Episode:  # noqa: ANN401 - gymnasium is an extra
    """Play a sequence from the start of a program; it may not stop before its last action."""
    observation, info = env.reset(options={"problem": problem})
    seen, ended = [observation], False
    for action in actions:
        if ended:
            raise ValueError(f"the episode ends before action {action} of {list(actions)}")
        observation, _, ended, _, info = env.step(np.int64(action))
        seen.append(observation)
        if "failure" in info:
            return Episode(seen, np.inf, True)
    return Episode(seen, float(info["cost"]), ended)


def pruned(env: Any, problem: str, actions: Sequence[int]) -> tuple[int, ...]:  # noqa: ANN401 - gymnasium is an extra
    """Return a sequence without the passes that can be left out one after another and cost nothing, last ones first."""
    found = tuple(actions)
    least = play(env, problem, found).cost
    for place in reversed(range(len(found))):
        shorter = found[:place] + found[place + 1 :]
        if (cost := play(env, problem, shorter).cost) <= least:
            found, least = shorter, cost
    return found


def exchanged(env: Any, problems: Iterable[str], pool: Sequences, longest: int) -> dict[str, tuple[int, ...]]:  # noqa: ANN401
    """Return for each problem the best sequence of a pool, or of two one after the other, up to a length.

    Of equal ones it is that which serves most problems, then the shortest. So programs learn from each other, and
    similar programs get the same sequence, which is easier to imitate.
    """
    single = {tuple(actions) for actions in pool.values()}
    joined = {one + other for one in single for other in single if len(one + other) <= longest}
    sequences = sorted(single | joined, key=lambda s: (len(s), s))
    names = list(problems)
    costs = np.array([[play(env, problem, actions).cost for actions in sequences] for problem in names])
    best = costs <= costs.min(axis=1, keepdims=True)
    return {
        name: sequences[int(np.where(row, best.sum(axis=0), -1).argmax())]
        for name, row in zip(names, best, strict=True)
    }


def demonstrated(env: Any, sequences: Sequences, detours: int, rng: Generator) -> Pairs:  # noqa: ANN401
    """Return n observations and the right action after each, `(n,)`, action 0 at the end.

    Each sequence is played from the start of its program, and after up to three random passes, as often as `detours`
    says. A detour after which it no longer reaches its cost is left out. So the policy also learns what to do where no
    demonstration leads (noise injection, Laskey et al. 2017).
    """
    seen: list[Any] = []
    right: list[int] = []
    for problem, actions in sequences.items():
        least = play(env, problem, actions).cost
        for detour in range(detours + 1):
            first = rng.integers(1, env.action_space.n, rng.integers(1, _LONGEST_DETOUR + 1) if detour else 0)
            episode = play(env, problem, [*first.tolist(), *actions])
            if episode.cost <= least:
                seen.extend(episode.observations[len(first) :])
                right.extend([*actions, 0])
    return seen, np.array(right, np.int64)


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
        x = jnp.clip((np.log1p(observation) - middle) / scale, -5, 5)
        return np.asarray(_mixed(networks, x), np.float64)

    return policy


@filter_jit
def _mixed(networks: list[_Network], x: Array) -> Array:
    return jnp.log(jnp.mean(jnp.stack([jax.nn.softmax(network(x)) for network in networks]), axis=0))


@filter_jit
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


class Found(NamedTuple):
    """The best sequence that was compiled.

    Attributes:
      actions: it.
      cost: its cost.
      compilations: how many sequences were costed; each beginning that was costed counts.
    """

    actions: tuple[int, ...]
    cost: float
    compilations: int


class _Beginning(NamedTuple):
    score: float
    actions: tuple[int, ...]
    observation: Any


def greedy(env: Any, problem: str, policy: Policy) -> Found:  # noqa: ANN401 - gymnasium is an extra
    """Return what the policy does alone: the most probable action until it stops. The result counts, not its best."""
    episode, actions = play(env, problem, ()), tuple[int, ...]()
    while not episode.ended and (best := int(policy(episode.observations[-1]).argmax())):
        actions = (*actions, best)
        episode = play(env, problem, actions)
    return Found(actions, episode.cost, len(actions))


def beam(env: Any, problem: str, policy: Policy, width: int, compilations: int) -> Found:  # noqa: ANN401
    """Return the best of the beginnings that the policy finds most probable.

    Each round lengthens the `width` beginnings of the highest probability by one pass and costs them. It ends when all
    of them stop, or after `compilations` costs.
    """
    start = play(env, problem, ())
    best, used = Found((), start.cost, 0), 0
    beginnings = [_Beginning(0.0, (), start.observations[-1])]
    while beginnings and used < compilations:
        longer: list[_Beginning] = []
        for score, actions in _most_probable(beginnings, policy, width)[: compilations - used]:
            episode, used = play(env, problem, actions), used + 1
            best = min(best, Found(actions, episode.cost, 0), key=lambda found: found.cost)
            if not episode.ended:
                longer.append(_Beginning(score, actions, episode.observations[-1]))
        beginnings = longer
    return best._replace(compilations=used)


def _most_probable(beginnings: list[_Beginning], policy: Policy, width: int) -> list[tuple[float, tuple[int, ...]]]:
    """Return the most probable beginnings that are one pass longer; those that stop take their place and leave."""
    choices = [
        (score + float(chance), (*actions, action))
        for score, actions, observation in beginnings
        for action, chance in enumerate(policy(observation))
    ]
    best = sorted(choices, key=lambda choice: -choice[0])[:width]
    return [(score, actions) for score, actions in best if actions[-1]]
