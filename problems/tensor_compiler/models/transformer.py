"""Training of a decoder-only transformer (Vaswani et al., Attention Is All You Need, 2017).

The layers are those of GPT-2 (Radford et al., Language Models are Unsupervised Multitask Learners, 2019): layer norm
before each part, learned positions, and an output layer tied to the embedding. Weights are float32, compute is
bfloat16, and the optimiser is Adam (Kingma and Ba, 2015).
"""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, cross_entropy, dense, dense_weights, softmax

EPSILON = 1e-5
LEARNING_RATE = 3e-4
DECAY_FIRST, DECAY_SECOND, ADAM_EPSILON = 0.9, 0.999, 1e-8


def _norm_weights(width: int) -> Tree:
    """The abstract weights of a layer norm."""
    return {"scale": abstract(width), "offset": abstract(width)}


def _layer_weights(width: int, hidden: int) -> Tree:
    """The abstract weights of one layer."""
    return {
        "attention_norm": _norm_weights(width),
        "attention_inputs": dense_weights(width, 3 * width),
        "attention_output": dense_weights(width, width),
        "feed_forward_norm": _norm_weights(width),
        "feed_forward_expand": dense_weights(width, hidden),
        "feed_forward_contract": dense_weights(hidden, width),
    }


def _weights(depth: int, width: int, hidden: int, sequence: int, vocabulary: int) -> Tree:
    """The abstract weights of the network."""
    return {
        "embedding": abstract(vocabulary, width),
        "positions": abstract(sequence, width),
        "layers": [_layer_weights(width, hidden) for _ in range(depth)],
        "final_norm": _norm_weights(width),
    }


def _layer_norm(x: jax.Array, norm: Tree) -> jax.Array:
    """Layer norm over the last axis, in float32: [..., width] -> [..., width]."""
    full = x.astype(jnp.float32)
    centred = full - full.mean(axis=-1, keepdims=True)
    variance = jnp.square(centred).mean(axis=-1, keepdims=True)
    return (centred * lax.rsqrt(variance + EPSILON) * norm["scale"] + norm["offset"]).astype(x.dtype)


def _gelu(x: jax.Array) -> jax.Array:
    """The Gaussian error linear unit by its tanh approximation, elementwise."""
    return 0.5 * x * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _attention(x: jax.Array, layer: Tree, heads: int) -> jax.Array:
    """Causal self-attention with a softmax in float32: [batch, sequence, width] -> the same."""
    batch, sequence, width = x.shape
    inputs = dense(x, layer["attention_inputs"]).reshape(batch, sequence, 3, heads, width // heads)
    query, key, value = (inputs[:, :, part] for part in range(3))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key).astype(jnp.float32) * (width // heads) ** -0.5
    causal = jnp.tril(jnp.ones((sequence, sequence), bool))
    scores = jnp.where(causal, scores, jnp.finfo(jnp.float32).min)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", softmax(scores).astype(x.dtype), value)
    return dense(mixed.reshape(x.shape), layer["attention_output"])


def _feed_forward(x: jax.Array, layer: Tree) -> jax.Array:
    """The two dense layers applied at every position: [batch, sequence, width] -> the same."""
    return dense(_gelu(dense(x, layer["feed_forward_expand"])), layer["feed_forward_contract"])


def _loss(weights: Tree, tokens: jax.Array, heads: int) -> jax.Array:
    """The cross-entropy of each next token: [batch, sequence + 1] of int32 -> []."""
    x = jnp.take(weights["embedding"], tokens[:, :-1], axis=0, mode="clip") + weights["positions"]
    x = x.astype(jnp.bfloat16)
    for layer in weights["layers"]:
        x = x + _attention(_layer_norm(x, layer["attention_norm"]), layer, heads)
        x = x + _feed_forward(_layer_norm(x, layer["feed_forward_norm"]), layer)
    x = _layer_norm(x, weights["final_norm"])
    return cross_entropy(x @ weights["embedding"].astype(x.dtype).T, tokens[:, 1:])


def _adam(weights: Tree, first: Tree, second: Tree, time: jax.Array) -> Tree:
    """The weights after Adam's update at step `time`, given the moments of their gradients."""
    first_mass, second_mass = 1 - DECAY_FIRST**time, 1 - DECAY_SECOND**time

    def updated(weight: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
        return weight - LEARNING_RATE * (first / first_mass) / (jnp.sqrt(second / second_mass) + ADAM_EPSILON)

    return jax.tree.map(updated, weights, first, second)


def train_step(
    weights: Tree, first: Tree, second: Tree, time: jax.Array, tokens: jax.Array, *, heads: int
) -> tuple[Tree, Tree, Tree, jax.Array, jax.Array]:
    """Weights, first and second moments and step number after one step, and the loss on `tokens` before it.

    Tokens are [batch, sequence + 1] of int32; `time` is [] of float32 and counts the steps done.
    """
    loss, gradients = jax.value_and_grad(_loss)(weights, tokens, heads)
    time = time + 1
    first = jax.tree.map(lambda m, g: DECAY_FIRST * m + (1 - DECAY_FIRST) * g, first, gradients)
    second = jax.tree.map(lambda v, g: DECAY_SECOND * v + (1 - DECAY_SECOND) * g * g, second, gradients)
    return _adam(weights, first, second, time), first, second, time, loss


def build(
    *,
    batch: int = 8,
    sequence: int = 512,
    depth: int = 4,
    width: int = 512,
    heads: int = 8,
    hidden: int = 2048,
    vocabulary: int = 8192,
) -> Program:
    """One training step on a batch of token sequences."""
    weights = _weights(depth, width, hidden, sequence, vocabulary)
    tokens = abstract(batch, sequence + 1, dtype=jnp.int32)
    return partial(train_step, heads=heads), (weights, weights, weights, abstract(), tokens)
