"""Training of a decoder-only transformer (Vaswani et al., Attention Is All You Need, 2017).

The layers are those of GPT-2 (Radford et al., Language Models are Unsupervised Multitask Learners, 2019): layer norm
before each part, learned positions, and an output layer tied to the embedding. Weights are float32, compute is
bfloat16, and the optimiser is Adam (Kingma and Ba, 2015).
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from . import Program
from .layers import Tree, abstract, cross_entropy, dense, dense_weights, norm_weights
from .sequence import Adam, attended, attention_scores, causal, gelu, layer_norm, masked

ADAM = Adam(rate=3e-4)


def attention_weights(width: int) -> Tree:
    """The abstract weights of a layer's self-attention and its norm."""
    return {
        "attention_norm": norm_weights(width),
        "attention_inputs": dense_weights(width, 3 * width),
        "attention_output": dense_weights(width, width),
    }


def feed_forward_weights(width: int, hidden: int) -> Tree:
    """The abstract weights of a layer's feed-forward part and its norm."""
    return {
        "feed_forward_norm": norm_weights(width),
        "feed_forward_expand": dense_weights(width, hidden),
        "feed_forward_contract": dense_weights(hidden, width),
    }


def network_weights(layers: list[Tree], width: int, sequence: int, vocabulary: int) -> Tree:
    """The abstract weights of a network with these layers."""
    return {
        "embedding": abstract(vocabulary, width),
        "positions": abstract(sequence, width),
        "layers": layers,
        "final_norm": norm_weights(width),
    }


def dense_network(depth: int, width: int, hidden: int, sequence: int, vocabulary: int) -> Tree:
    """The abstract weights of a network whose feed-forward parts are dense."""
    layers = [attention_weights(width) | feed_forward_weights(width, hidden) for _ in range(depth)]
    return network_weights(layers, width, sequence, vocabulary)


def attention_inputs(x: jax.Array, layer: Tree, heads: int) -> list[jax.Array]:
    """Queries, keys and values: [batch, sequence, width] -> three of [batch, sequence, heads, width / heads]."""
    batch, sequence, width = x.shape
    inputs = dense(x, layer["attention_inputs"]).reshape(batch, sequence, 3, heads, width // heads)
    return [inputs[:, :, part] for part in range(3)]


def attention(x: jax.Array, layer: Tree, heads: int) -> tuple[jax.Array, Tree]:
    """Causal self-attention, and the keys and values: [batch, sequence, width] -> the same."""
    query, key, value = attention_inputs(x, layer, heads)
    scores = attention_scores(query, key)
    mixed = attended(masked(scores, causal(x.shape[1])), value)
    return dense(mixed.reshape(x.shape), layer["attention_output"]), {"key": key, "value": value}


def feed_forward(x: jax.Array, layer: Tree) -> jax.Array:
    """The two dense layers applied at every position: [batch, sequence, width] -> the same."""
    return dense(gelu(dense(x, layer["feed_forward_expand"])), layer["feed_forward_contract"])


def embedded(weights: Tree, tokens: jax.Array) -> jax.Array:
    """The input of the first layer, in bfloat16: [batch, sequence] of int32 -> [batch, sequence, width]."""
    x = jnp.take(weights["embedding"], tokens, axis=0, mode="clip") + weights["positions"]
    return x.astype(jnp.bfloat16)


def logits(weights: Tree, x: jax.Array) -> jax.Array:
    """Scores of the next token from the last layer's output: [..., width] -> [..., vocabulary]."""
    x = layer_norm(x, weights["final_norm"])
    return x @ weights["embedding"].astype(x.dtype).T


def states(weights: Tree, tokens: jax.Array, heads: int) -> tuple[jax.Array, list[Tree]]:
    """The last layer's output, and the layers' keys and values: [batch, sequence] of int32 -> [b, sequence, width]."""
    x, caches = embedded(weights, tokens), []
    for layer in weights["layers"]:
        y, cache = attention(layer_norm(x, layer["attention_norm"]), layer, heads)
        x = x + y
        x = x + feed_forward(layer_norm(x, layer["feed_forward_norm"]), layer)
        caches.append(cache)
    return x, caches


def next_token_loss(weights: Tree, tokens: jax.Array, heads: int) -> jax.Array:
    """The cross-entropy of each next token: [batch, sequence + 1] of int32 -> []."""
    x, _ = states(weights, tokens[:, :-1], heads)
    return cross_entropy(logits(weights, x), tokens[:, 1:])


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
    weights = dense_network(depth, width, hidden, sequence, vocabulary)
    tokens = abstract(batch, sequence + 1, dtype=jnp.int32)
    return ADAM.training(partial(next_token_loss, heads=heads), weights, tokens)
