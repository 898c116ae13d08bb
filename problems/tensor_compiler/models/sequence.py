"""Parts that the sequence models share: layer norm, attention, key-value caches, and training by Adam."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike

from . import Program
from .layers import Tree, abstract, log_softmax, softmax

EPSILON = 1e-5


def abstract_as(tree: Tree, dtype: DTypeLike) -> Tree:
    """Abstract arrays with the shapes of the tree, all of one type."""
    return jax.tree.map(lambda leaf: abstract(*leaf.shape, dtype=dtype), tree)


def layer_norm(x: jax.Array, norm: Tree, epsilon: float = EPSILON) -> jax.Array:
    """Layer norm over the last axis, in float32 (Ba et al., 2016): [..., width] -> [..., width]."""
    full = x.astype(jnp.float32)
    centred = full - full.mean(axis=-1, keepdims=True)
    variance = jnp.square(centred).mean(axis=-1, keepdims=True)
    return (centred * lax.rsqrt(variance + epsilon) * norm["scale"] + norm["offset"]).astype(x.dtype)


def gelu(x: jax.Array) -> jax.Array:
    """The Gaussian error linear unit by its tanh approximation, elementwise."""
    return 0.5 * x * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def attention_scores(query: jax.Array, key: jax.Array) -> jax.Array:
    """Scaled products of queries and keys in float32: [batch, q, heads, size], [batch, k, heads, size] -> [b, h, q, k].

    With `masked` and `attended` this is the attention of Vaswani et al., Attention Is All You Need, 2017.
    """
    return jnp.einsum("bqhd,bkhd->bhqk", query, key).astype(jnp.float32) * query.shape[-1] ** -0.5


def masked(scores: jax.Array, allowed: jax.Array) -> jax.Array:
    """The scores where a query may see a key, the lowest number elsewhere: [..., q, k] -> [..., q, k]."""
    return jnp.where(allowed, scores, jnp.finfo(jnp.float32).min)


def attended(scores: jax.Array, value: jax.Array) -> jax.Array:
    """Values weighted by the softmax of the scores: [b, h, q, k] and [b, k, h, size] -> [b, q, h, size]."""
    return jnp.einsum("bhqk,bkhd->bqhd", softmax(scores).astype(value.dtype), value)


def causal(sequence: int) -> jax.Array:
    """A mask of the positions that each position may see, itself and earlier ones: [sequence, sequence] of bool."""
    return jnp.tril(jnp.ones((sequence, sequence), bool))


def abstract_cache(batch: int, sequence: int, heads: int, size: int) -> Tree:
    """The abstract keys and values of a layer, in bfloat16."""
    return dict.fromkeys(("key", "value"), abstract(batch, sequence, heads, size, dtype=jnp.bfloat16))


def stored(cache: Tree, key: jax.Array, value: jax.Array, position: jax.Array) -> Tree:
    """The cache [batch, sequence, heads, size] with key and value [batch, 1, heads, size] of one position added."""
    new = {"key": key, "value": value}
    return {name: lax.dynamic_update_slice_in_dim(cache[name], new[name], position, axis=1) for name in new}


def counted_cross_entropy(
    logits: jax.Array, labels: jax.Array, counted: jax.Array, smoothing: float = 0.0
) -> jax.Array:
    """The mean cross-entropy of the labels that count: [..., classes], [...] of int32 and of bool -> [].

    With `smoothing`, that share of a label's weight is spread over all classes (Szegedy et al., 2016).
    """
    scores = log_softmax(logits)
    gains = jnp.take_along_axis(scores, labels[..., None], axis=-1, mode="clip")[..., 0]
    if smoothing:
        gains = (1 - smoothing) * gains + smoothing * scores.mean(axis=-1)
    share = counted.astype(jnp.float32)
    return -(gains * share).sum() / jnp.maximum(1, share.sum())


def clipped(gradients: Tree, largest: float) -> Tree:
    """The gradients, scaled down to the largest global norm if theirs is larger (Pascanu et al., 2013)."""
    norm = jnp.sqrt(sum(jnp.square(gradient).sum() for gradient in jax.tree.leaves(gradients)))
    factor = jnp.minimum(1, largest / norm)
    return jax.tree.map(lambda gradient: factor * gradient, gradients)


class Adam(NamedTuple):
    """Adam (Kingma and Ba, 2015); with `decay`, which applies to matrices only, AdamW (Loshchilov and Hutter, 2019).

    `rate` is the learning rate, or a function of the step number that returns it. The gradients are clipped to a global
    norm of `largest_norm`.
    """

    rate: float | Callable[[jax.Array], jax.Array]
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8
    decay: float = 0.0
    largest_norm: float | None = None

    def training(self, loss: Callable[..., jax.Array], weights: Tree, *batch: Tree | jax.ShapeDtypeStruct) -> Program:
        """One step of training on a batch, whose arrays `loss` takes after the weights.

        The program takes the weights, their first and second moments, the number of steps done, [] of float32, and the
        batch. It returns the first four after the step, and the loss on the batch before it.
        """

        def train_step(
            weights: Tree, first: Tree, second: Tree, time: jax.Array, *batch: Tree | jax.Array
        ) -> tuple[Tree, Tree, Tree, jax.Array, jax.Array]:
            value, gradients = jax.value_and_grad(loss)(weights, *batch)
            return *self.step(weights, first, second, time, gradients), value

        # Names of parameters become names in the HLO text, so those of the batch are the loss's.
        state = list(inspect.signature(train_step).parameters.values())[:-1]
        arrays = list(inspect.signature(loss).parameters.values())[1 : 1 + len(batch)]
        train_step.__signature__ = inspect.Signature([*state, *arrays])  # type: ignore[attr-defined]
        return train_step, (weights, weights, weights, abstract(), *batch)

    def step(
        self, weights: Tree, first: Tree, second: Tree, time: jax.Array, gradients: Tree
    ) -> tuple[Tree, Tree, Tree, jax.Array]:
        """Weights, first and second moments and the number of steps done, [] of float32, after one step."""
        gradients = clipped(gradients, self.largest_norm) if self.largest_norm else gradients
        time = time + 1
        first = jax.tree.map(lambda m, g: self.first_decay * m + (1 - self.first_decay) * g, first, gradients)
        second = jax.tree.map(lambda v, g: self.second_decay * v + (1 - self.second_decay) * g * g, second, gradients)
        return self._updated(weights, first, second, time), first, second, time

    def _updated(self, weights: Tree, first: Tree, second: Tree, time: jax.Array) -> Tree:
        """The weights after step number `time`, given the moments."""
        first_mass, second_mass = 1 - self.first_decay**time, 1 - self.second_decay**time
        rate = self.rate(time) if callable(self.rate) else self.rate

        def updated(weight: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
            decayed = weight * (1 - rate * self.decay) if self.decay and weight.ndim > 1 else weight
            return decayed - rate * (first / first_mass) / (jnp.sqrt(second / second_mass) + self.epsilon)

        return jax.tree.map(updated, weights, first, second)
