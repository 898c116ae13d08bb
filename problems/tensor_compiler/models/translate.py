"""The encoder-decoder transformer (Vaswani et al., Attention Is All You Need, 2017), training and translation.

One embedding serves source, target and output; token 0 is padding. Training minimises the label-smoothed cross-entropy
by Adam with the paper's schedule, without dropout. Weights are float32, compute is bfloat16; inference has all weights
in bfloat16.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, dense, dense_weights, norm_weights
from .sequence import (
    Adam,
    abstract_as,
    abstract_cache,
    attended,
    attention_scores,
    causal,
    counted_cross_entropy,
    layer_norm,
    masked,
    stored,
)

PADDING = 0
SMOOTHING = 0.1
WARM_UP = 4000
LONGEST_WAVE = 10_000


def _adam(width: int) -> Adam:
    """The paper's optimiser: the learning rate rises, then falls with the square root of the step number."""
    return Adam(
        rate=lambda time: width**-0.5 * jnp.minimum(lax.rsqrt(time), time * WARM_UP**-1.5),
        second_decay=0.98,
        epsilon=1e-9,
    )


def _attention_weights(width: int, heads: int) -> Tree:
    """The abstract weights of an attention and its norm."""
    split, joined = abstract(width, heads, width // heads), abstract(heads, width // heads, width)
    return {"query": split, "key": split, "value": split, "output": joined, "norm": norm_weights(width)}


def _layer_weights(width: int, heads: int, *attentions: str) -> Tree:
    """The abstract weights of one layer with the named attentions."""
    feed_forward = {
        "expand": dense_weights(width, 4 * width),
        "contract": dense_weights(4 * width, width),
        "norm": norm_weights(width),
    }
    return {name: _attention_weights(width, heads) for name in attentions} | {"feed_forward": feed_forward}


def _weights(depth: int, width: int, heads: int, vocabulary: int) -> Tree:
    """The abstract weights of the network."""
    return {
        "embedding": abstract(vocabulary, width),
        "encoder": [_layer_weights(width, heads, "self") for _ in range(depth)],
        "decoder": [_layer_weights(width, heads, "self", "cross") for _ in range(depth)],
    }


def _projected(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Vectors for every head: [batch, sequence, width] -> [batch, sequence, heads, width / heads]."""
    return jnp.einsum("bsw,whd->bshd", x, kernel.astype(x.dtype))


def _cache(x: jax.Array, part: Tree) -> Tree:
    """The keys and values of an attention to `x`: [batch, sequence, width] -> [batch, sequence, heads, size] each."""
    return {name: _projected(x, part[name]) for name in ("key", "value")}


def _attention(x: jax.Array, part: Tree, cache: Tree, allowed: jax.Array) -> jax.Array:
    """Attention to the allowed positions in the cache, residual sum and norm: [b, q, width] -> [b, q, width]."""
    scores = attention_scores(_projected(x, part["query"]), cache["key"])
    mixed = attended(masked(scores, allowed), cache["value"])
    return layer_norm(x + jnp.einsum("bshd,hdw->bsw", mixed, part["output"].astype(x.dtype)), part["norm"])


def _feed_forward(x: jax.Array, part: Tree) -> jax.Array:
    """The two dense layers, residual sum and norm: [batch, sequence, width] -> [batch, sequence, width]."""
    hidden = jnp.maximum(dense(x, part["expand"]), 0)
    return layer_norm(x + dense(hidden, part["contract"]), part["norm"])


def _waves(positions: jax.Array, width: int) -> jax.Array:
    """The sinusoids that encode positions: [sequence] of int32 -> [sequence, width]."""
    rates = jnp.exp(jnp.arange(0, width, 2) * (-math.log(LONGEST_WAVE) / width))
    angles = positions[:, None] * rates
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


def _embedded(weights: Tree, tokens: jax.Array, positions: jax.Array) -> jax.Array:
    """The input of the first layer in bfloat16: [b, sequence] and [sequence] of int32 -> [b, sequence, width]."""
    width = weights["embedding"].shape[1]
    x = jnp.take(weights["embedding"], tokens, axis=0, mode="clip") * math.sqrt(width)
    return (x + _waves(positions, width)).astype(jnp.bfloat16)


def encode(weights: Tree, source: jax.Array) -> list[Tree]:
    """The keys and values of the source for each decoder layer: [batch, sequence] of int32."""
    real = (source != PADDING)[:, None, None]
    x = _embedded(weights, source, jnp.arange(source.shape[1]))
    for layer in weights["encoder"]:
        x = _attention(x, layer["self"], _cache(x, layer["self"]), real)
        x = _feed_forward(x, layer["feed_forward"])
    return [_cache(x, layer["cross"]) for layer in weights["decoder"]]


def _logits(weights: Tree, source: jax.Array, target: jax.Array) -> jax.Array:
    """Scores of each next token: [batch, s] and [batch, t] of int32 -> [batch, t, vocabulary]."""
    real, before = (source != PADDING)[:, None, None], causal(target.shape[1])
    memories = encode(weights, source)
    x = _embedded(weights, target, jnp.arange(target.shape[1]))
    for layer, memory in zip(weights["decoder"], memories, strict=True):
        x = _attention(x, layer["self"], _cache(x, layer["self"]), before)
        x = _feed_forward(_attention(x, layer["cross"], memory, real), layer["feed_forward"])
    return x @ weights["embedding"].astype(x.dtype).T


def _loss(weights: Tree, source: jax.Array, target: jax.Array) -> jax.Array:
    """The label-smoothed cross-entropy of each next token: [batch, s] and [batch, t + 1] of int32 -> []."""
    labels = target[:, 1:]
    return counted_cross_entropy(_logits(weights, source, target[:, :-1]), labels, labels != PADDING, SMOOTHING)


def _decode_layer(
    x: jax.Array, layer: Tree, memory: Tree, cache: Tree, position: jax.Array, real: jax.Array
) -> tuple[jax.Array, Tree]:
    """A decoder layer at one position, and its cache with that position added: [batch, 1, width] -> the same."""
    cache = stored(cache, **_cache(x, layer["self"]), position=position)
    x = _attention(x, layer["self"], cache, jnp.arange(cache["key"].shape[1]) <= position)
    return _feed_forward(_attention(x, layer["cross"], memory, real), layer["feed_forward"]), cache


def decode_step(
    weights: Tree, source: jax.Array, memories: list[Tree], caches: list[Tree], position: jax.Array, tokens: jax.Array
) -> tuple[jax.Array, list[Tree]]:
    """Scores of the token after `tokens`, [batch] of int32 at `position`, and the caches: -> [batch, vocabulary].

    The source is [batch, s] of int32, the memories are the result of `encode` for it.
    """
    real, updated = (source != PADDING)[:, None, None], []
    x = _embedded(weights, tokens[:, None], position[None])
    for layer, memory, cache in zip(weights["decoder"], memories, caches, strict=True):
        x, cache = _decode_layer(x, layer, memory, cache, position, real)
        updated.append(cache)
    return x[:, 0] @ weights["embedding"].astype(x.dtype).T, updated


def build(
    *,
    batch: int = 64,
    sequence: int = 64,
    depth: int = 6,
    width: int = 512,
    heads: int = 8,
    vocabulary: int = 37000,
    training: bool = True,
    decode: bool = False,
) -> Program:
    """One training step on pairs of sentences, the encoding of sentences, or with `decode` one token of each.

    The default sizes are those of the base model; a width of 1024 and 16 heads give the big one.
    """
    weights = _weights(depth, width, heads, vocabulary)
    source = abstract(batch, sequence, dtype=jnp.int32)
    if training:
        target = abstract(batch, sequence + 1, dtype=jnp.int32)
        return _adam(width).training(_loss, weights, source, target)
    weights = abstract_as(weights, jnp.bfloat16)
    if not decode:
        return encode, (weights, source)
    caches = [abstract_cache(batch, sequence, heads, width // heads) for _ in range(depth)]
    position, tokens = abstract(dtype=jnp.int32), abstract(batch, dtype=jnp.int32)
    return decode_step, (weights, source, caches, caches, position, tokens)
