"""A policy that reads the program's graph: a graph network that learns by imitation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.typing import NDArray

_KINDS, _NODE, _WIDTH, _ROUNDS = 256, 32, 128, 3
_RATE, _DECAY, _BATCH, _SMOOTHING = 1e-3, 1e-2, 16, 0.02


class Seen(NamedTuple):
    """An observation with the graph of the module.

    Attributes:
      counts: `(width,)` the observation of the environment.
      labels: `(n,)` the kind of each operation, below 256.
      edges: `(m, 2)` an operation and one that uses its result.
    """

    counts: NDArray[np.float32]
    labels: NDArray[np.uint8]
    edges: NDArray[np.int32]


class WithGraph:
    """An environment whose observations are `Seen`: it takes the graph from `info["graph"]`."""

    def __init__(self, env: Any) -> None:  # noqa: ANN401 - gymnasium is an extra
        self._env, self.action_space = env, env.action_space

    def reset(self, **arguments: Any) -> tuple[Seen, dict[str, Any]]:  # noqa: ANN401
        """Start an episode."""
        counts, info = self._env.reset(**arguments)
        return Seen(counts, *info["graph"]), info

    def step(self, action: np.int64) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Run one pass, or stop."""
        counts, *others, info = self._env.step(action)
        return Seen(counts, *info["graph"]), *others, info


class _Padded(NamedTuple):
    """`Seen` with as many operations and edges as others have; `used` is 1 for those that exist."""

    counts: Any
    labels: Any
    used: Any
    edges: Any
    weights: Any


class _Network(eqx.Module):
    kinds: eqx.nn.Embedding
    rounds: list[eqx.nn.Linear]
    first: eqx.nn.Linear
    second: eqx.nn.Linear

    def __init__(self, inputs: int, actions: int, key: Array) -> None:
        keys = jax.random.split(key, _ROUNDS + 3)
        self.kinds = eqx.nn.Embedding(_KINDS, _NODE, key=keys[0])
        self.rounds = [eqx.nn.Linear(3 * _NODE, _NODE, key=k) for k in keys[3:]]
        self.first = eqx.nn.Linear(inputs + 2 * _NODE, _WIDTH, key=keys[1])
        self.second = eqx.nn.Linear(_WIDTH, actions, key=keys[2])

    def __call__(self, x: _Padded) -> Array:
        """Return the logits of actions: mean messages over operands and users, then the mean and the largest of all."""
        h = self.kinds.weight[x.labels]
        source, target = x.edges[:, 0], x.edges[:, 1]
        for layer in self.rounds:
            messages = _mean(h, source, target, x.weights), _mean(h, target, source, x.weights)
            h = h + jax.nn.gelu(jax.vmap(layer)(jnp.concatenate([h, *messages], axis=1)))
        used = x.used[:, None]
        pooled = [(h * used).sum(axis=0) / used.sum(), jnp.where(used > 0, h, -jnp.inf).max(axis=0)]
        return self.second(jax.nn.relu(self.first(jnp.concatenate([x.counts, *pooled]))))


def _mean(h: Array, source: Array, target: Array, weights: Array) -> Array:
    """Return for each operation the mean of what its edges bring."""
    totals = jnp.zeros_like(h).at[target].add(h[source] * weights[:, None])
    return totals / jnp.maximum(jnp.zeros(len(h)).at[target].add(weights), 1)[:, None]


def imitate_graphs(
    seen: list[Seen], actions: NDArray[np.int64], count: int, steps: int, seed: int
) -> Callable[[Seen], NDArray[np.float64]]:
    """Return a policy that does what was demonstrated.

    Args:
      seen: n observations.
      actions: `(n,)` what is right after each.
      count: the number of all actions.
      steps: of the optimiser, on 16 observations each.
      seed: of weights and batches.
    """
    inputs = np.log1p(np.stack([one.counts for one in seen]))
    middle, scale = inputs.mean(axis=0), inputs.std(axis=0) + 0.05  # what never varied must not decide
    size = max(_size(one) for one in seen)
    padded = jax.tree.map(lambda *leaves: np.stack(leaves), *(_padded(one, middle, scale, size) for one in seen))
    wanted = np.asarray(optax.smooth_labels(jax.nn.one_hot(actions, count), _SMOOTHING))
    network = _Network(inputs.shape[1], count, jax.random.key(seed))
    memory, rng = _OPTIMISER.init(eqx.filter(network, eqx.is_inexact_array)), np.random.default_rng(seed)
    for _ in range(steps):
        places = rng.integers(0, len(seen), _BATCH)
        batch = jax.tree.map(lambda column, places=places: column[places], padded)
        network, memory = _improved(network, memory, batch, wanted[places])
    return lambda one: np.asarray(jax.nn.log_softmax(_logits(network, _padded(one, middle, scale, _size(one)))), float)


def _size(seen: Seen) -> int:
    """Return a power of two that is at least the number of operations and of edges, so that few shapes are compiled."""
    return 1 << max(len(seen.labels), len(seen.edges), 1).bit_length()


def _padded(seen: Seen, middle: NDArray, scale: NDArray, size: int) -> _Padded:
    counts = np.clip((np.log1p(seen.counts) - middle) / scale, -5, 5).astype(np.float32)
    labels, edges, used = np.zeros(size, np.int32), np.zeros((size, 2), np.int32), np.zeros((2, size), np.float32)
    labels[: len(seen.labels)], used[0, : len(seen.labels)] = seen.labels, 1
    edges[: len(seen.edges)], used[1, : len(seen.edges)] = seen.edges, 1
    return _Padded(counts, labels, used[0], edges, used[1])


_OPTIMISER = optax.adamw(_RATE, weight_decay=_DECAY)


@eqx.filter_jit
def _logits(network: _Network, x: _Padded) -> Array:
    return network(jax.tree.map(jnp.asarray, x))


@eqx.filter_jit
def _improved(
    network: _Network, memory: optax.OptState, batch: _Padded, wanted: NDArray
) -> tuple[_Network, optax.OptState]:
    def loss(network: _Network) -> Array:
        return optax.softmax_cross_entropy(jax.vmap(network)(batch), wanted).mean()

    gradient = eqx.filter_grad(loss)(network)
    update, memory = _OPTIMISER.update(gradient, memory, eqx.filter(network, eqx.is_inexact_array))
    return eqx.apply_updates(network, update), memory
