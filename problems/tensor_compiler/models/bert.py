"""BERT (Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers, 2019), pre-training and encoding.

Pre-training predicts masked tokens and whether the second sentence follows the first, without dropout, by AdamW with
the paper's schedule. Weights are float32, compute is bfloat16; inference has all weights in bfloat16.
"""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, cross_entropy, dense, dense_weights, norm_weights
from .sequence import (
    Adam,
    abstract_as,
    attended,
    attention_scores,
    counted_cross_entropy,
    layer_norm,
    masked,
)

EPSILON = 1e-12
RATE, WARM_UP, STEPS = 1e-4, 10_000, 1_000_000
SEGMENTS = 2
MASKED_SHARE = 0.15  # of the tokens of a sequence


def _rate(time: jax.Array) -> jax.Array:
    """The learning rate of a step: a linear rise, then a linear fall to zero."""
    return RATE * jnp.minimum(time / WARM_UP, jnp.maximum(0, 1 - time / STEPS))


ADAM = Adam(rate=_rate, epsilon=1e-6, decay=0.01, largest_norm=1.0)


def _layer_weights(width: int, hidden: int) -> Tree:
    """The abstract weights of one layer."""
    attention = {name: dense_weights(width, width) for name in ("query", "key", "value", "output")}
    return attention | {
        "attention_norm": norm_weights(width),
        "expand": dense_weights(width, hidden),
        "contract": dense_weights(hidden, width),
        "feed_forward_norm": norm_weights(width),
    }


def _encoder_weights(depth: int, width: int, context: int, vocabulary: int) -> Tree:
    """The abstract weights of the encoder."""
    return {
        "embedding": abstract(vocabulary, width),
        "positions": abstract(context, width),
        "segments": abstract(SEGMENTS, width),
        "embedding_norm": norm_weights(width),
        "layers": [_layer_weights(width, 4 * width) for _ in range(depth)],
        "pooler": dense_weights(width, width),
    }


def _head_weights(width: int, vocabulary: int) -> Tree:
    """The abstract weights of the two tasks' output layers; that of the masked tokens is tied to the embedding."""
    return {
        "transform": dense_weights(width, width),
        "transform_norm": norm_weights(width),
        "vocabulary_bias": abstract(vocabulary),
        "follows": dense_weights(width, 2),
    }


def _gelu(x: jax.Array) -> jax.Array:
    """The Gaussian error linear unit (Hendrycks and Gimpel, 2016), elementwise."""
    return 0.5 * x * (1 + lax.erf(x / math.sqrt(2)))


def _attention(x: jax.Array, layer: Tree, real: jax.Array, heads: int) -> jax.Array:
    """Self-attention to the real tokens: [b, sequence, width] and [b, sequence] of bool -> [b, sequence, width]."""
    split = (*x.shape[:2], heads, x.shape[2] // heads)
    query, key, value = (dense(x, layer[name]).reshape(split) for name in ("query", "key", "value"))
    mixed = attended(masked(attention_scores(query, key), real[:, None, None]), value)
    return dense(mixed.reshape(x.shape), layer["output"])


def _layer(x: jax.Array, layer: Tree, real: jax.Array, heads: int) -> jax.Array:
    """A layer with a norm after each part: [b, sequence, width] and [b, sequence] of bool -> [b, sequence, width]."""
    x = layer_norm(x + _attention(x, layer, real, heads), layer["attention_norm"], EPSILON)
    y = dense(_gelu(dense(x, layer["expand"])), layer["contract"])
    return layer_norm(x + y, layer["feed_forward_norm"], EPSILON)


def encode(weights: Tree, inputs: Tree, *, heads: int) -> tuple[jax.Array, jax.Array]:
    """States of all tokens and of the sequence: [batch, sequence, width] and [batch, width] of bfloat16.

    Inputs are the tokens, their segments and flags of real tokens, [batch, sequence] of int32, int32 and bool.
    """
    x = jnp.take(weights["embedding"], inputs["tokens"], axis=0, mode="clip")
    x = x + jnp.take(weights["segments"], inputs["segments"], axis=0, mode="clip")
    x = (x + weights["positions"][: x.shape[1]]).astype(jnp.bfloat16)
    x = layer_norm(x, weights["embedding_norm"], EPSILON)
    for layer in weights["layers"]:
        x = _layer(x, layer, inputs["real"], heads)
    return x, jnp.tanh(dense(x[:, 0], weights["pooler"]))


def _token_logits(weights: Tree, head: Tree, x: jax.Array, places: jax.Array) -> jax.Array:
    """Scores at the masked places: [batch, sequence, width], [batch, masked] -> [batch, masked, vocabulary]."""
    x = jnp.take_along_axis(x, places[..., None], axis=1, mode="clip")
    x = layer_norm(_gelu(dense(x, head["transform"])), head["transform_norm"], EPSILON)
    return x @ weights["embedding"].astype(x.dtype).T + head["vocabulary_bias"].astype(x.dtype)


def _loss(weights: Tree, inputs: Tree, targets: Tree, heads: int) -> jax.Array:
    """The sum of both tasks' cross-entropies, averaged over the masked tokens that count: -> [].

    Inputs are those of `encode`. Targets are the places of masked tokens, these tokens, and flags of those that
    count, [batch, masked] of int32, int32 and bool, and whether the second sentence follows, [batch] of int32.
    """
    x, pooled = encode(weights["encoder"], inputs, heads=heads)
    logits = _token_logits(weights["encoder"], weights["head"], x, targets["places"])
    masked_loss = counted_cross_entropy(logits, targets["tokens"], targets["counts"])
    return masked_loss + cross_entropy(dense(pooled, weights["head"]["follows"]), targets["follows"])


def _inputs(batch: int, sequence: int) -> Tree:
    """The abstract inputs of `encode`."""
    numbers, flags = (abstract(batch, sequence, dtype=dtype) for dtype in (jnp.int32, jnp.bool_))
    return {"tokens": numbers, "segments": numbers, "real": flags}


def _targets(batch: int, sequence: int) -> Tree:
    """The abstract targets of `_loss`."""
    numbers, flags = (abstract(batch, math.ceil(MASKED_SHARE * sequence), dtype=t) for t in (jnp.int32, jnp.bool_))
    return {"places": numbers, "tokens": numbers, "counts": flags, "follows": abstract(batch, dtype=jnp.int32)}


def build(
    *,
    batch: int = 32,
    sequence: int = 128,
    depth: int = 12,
    width: int = 768,
    heads: int = 12,
    context: int = 512,
    vocabulary: int = 30522,
    training: bool = True,
) -> Program:
    """One step of pre-training on pairs of sentences, or their encoding.

    The default sizes are BERT base; 24 layers of 1024 in 16 heads make BERT large.
    """
    encoder, inputs = _encoder_weights(depth, width, context, vocabulary), _inputs(batch, sequence)
    if not training:
        return partial(encode, heads=heads), (abstract_as(encoder, jnp.bfloat16), inputs)
    weights = {"encoder": encoder, "head": _head_weights(width, vocabulary)}
    return ADAM.training(partial(_loss, heads=heads), weights, inputs, _targets(batch, sequence))
