"""GPT-2 (Radford et al., Language Models are Unsupervised Multitask Learners, 2019), training and decoding.

The network is that of `transformer`, without dropout. The paper does not name the optimiser; here it is AdamW
with the settings of GPT-3 (Brown et al., Language Models are Few-Shot Learners, 2020). Weights are float32, compute is
bfloat16. Inference has all weights in bfloat16.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from . import Program
from .layers import Tree, abstract, dense
from .sequence import Adam, abstract_as, abstract_cache, attended, attention_scores, layer_norm, masked, stored
from .transformer import attention_inputs, dense_network, feed_forward, logits, next_token_loss, states

ADAM = Adam(rate=6e-4, second_decay=0.95, decay=0.1, largest_norm=1.0)


def prefill(weights: Tree, tokens: jax.Array, *, heads: int) -> tuple[jax.Array, list[Tree]]:
    """Scores of the token after the last, and the layers' caches: [batch, sequence] of int32 -> [batch, vocabulary]."""
    x, caches = states(weights, tokens, heads)
    return logits(weights, x[:, -1]), caches


def _decode_layer(x: jax.Array, layer: Tree, cache: Tree, position: jax.Array, heads: int) -> tuple[jax.Array, Tree]:
    """A layer at one position, and its cache with that position added: [batch, 1, width] -> [batch, 1, width]."""
    query, key, value = attention_inputs(layer_norm(x, layer["attention_norm"]), layer, heads)
    cache = stored(cache, key, value, position)
    visible = jnp.arange(cache["key"].shape[1]) <= position
    mixed = attended(masked(attention_scores(query, cache["key"]), visible), cache["value"])
    x = x + dense(mixed.reshape(x.shape), layer["attention_output"])
    return x + feed_forward(layer_norm(x, layer["feed_forward_norm"]), layer), cache


def decode_step(
    weights: Tree, caches: list[Tree], position: jax.Array, tokens: jax.Array, *, heads: int
) -> tuple[jax.Array, list[Tree]]:
    """Scores of the token after `tokens`, [batch] of int32 at `position`, and the caches: -> [batch, vocabulary]."""
    x = jnp.take(weights["embedding"], tokens, axis=0, mode="clip")
    x = (x + jnp.take(weights["positions"], position, axis=0, mode="clip")).astype(jnp.bfloat16)[:, None]
    updated = []
    for layer, cache in zip(weights["layers"], caches, strict=True):
        x, cache = _decode_layer(x, layer, cache, position, heads)
        updated.append(cache)
    return logits(weights, x[:, 0]), updated


def build(
    *,
    batch: int = 8,
    sequence: int = 1024,
    depth: int = 12,
    width: int = 768,
    heads: int = 12,
    vocabulary: int = 50257,
    training: bool = True,
    decode: bool = False,
) -> Program:
    """One training step, the encoding of a prompt, or with `decode` one token with a cache of `sequence` positions.

    The default sizes give the 124 million parameters; 24 layers of width 1024 with 16 heads give 355 million.
    """
    weights = dense_network(depth, width, 4 * width, sequence, vocabulary)
    if training:
        tokens = abstract(batch, sequence + 1, dtype=jnp.int32)
        return ADAM.training(partial(next_token_loss, heads=heads), weights, tokens)
    weights = abstract_as(weights, jnp.bfloat16)
    if not decode:
        return partial(prefill, heads=heads), (weights, abstract(batch, sequence, dtype=jnp.int32))
    caches = [abstract_cache(batch, sequence, heads, width // heads) for _ in range(depth)]
    position, tokens = abstract(dtype=jnp.int32), abstract(batch, dtype=jnp.int32)
    return partial(decode_step, heads=heads), (weights, caches, position, tokens)
