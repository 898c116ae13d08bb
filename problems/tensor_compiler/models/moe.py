"""A transformer with experts (Fedus et al., Switch Transformers, 2021), training and prediction.

It is the decoder of `transformer`, where every second layer sends each token to one of many feed-forward experts; an
expert takes a limited number of tokens of a sequence, and further tokens skip it. The router is computed in float32,
the rest in bfloat16. Training is by Adafactor (Shazeer and Stern, 2018) on float32 weights, without dropout; inference
has all weights in bfloat16.
"""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, cross_entropy, norm_weights, softmax
from .sequence import abstract_as, layer_norm
from .transformer import (
    attention,
    attention_weights,
    embedded,
    feed_forward,
    feed_forward_weights,
    logits,
    network_weights,
)

EVERY = 2  # every so many layers, the last has experts
BALANCE = 0.01  # weight of the loss that spreads tokens over experts
TRAINING_CAPACITY, INFERENCE_CAPACITY = 1.25, 2.0  # tokens an expert takes, relative to an even distribution
RATE, SMALLEST_SCALE, SMALLEST_SQUARE, DECAY = 1e-2, 1e-3, 1e-30, 0.8


def _expert_weights(width: int, hidden: int, experts: int) -> Tree:
    """The abstract weights of a router, its experts and their norm."""
    return {
        "feed_forward_norm": norm_weights(width),
        "router": abstract(width, experts),
        "expand": abstract(experts, width, hidden),
        "contract": abstract(experts, hidden, width),
    }


def _layer_weights(number: int, width: int, hidden: int, experts: int) -> Tree:
    """The abstract weights of a layer, with experts or without."""
    routed = number % EVERY == EVERY - 1
    part = _expert_weights(width, hidden, experts) if routed else feed_forward_weights(width, hidden)
    return attention_weights(width) | part


def _slots(chosen: jax.Array, capacity: int) -> jax.Array:
    """The slot of each token at its expert: [batch, sequence, experts] of 0 and 1 -> [batch, sequence, capacity].

    A token beyond the capacity has none. The tokens before each are counted by a product with a triangular matrix.
    """
    sequence = chosen.shape[1]
    counts = jnp.einsum("bse,st->bte", chosen, jnp.triu(jnp.ones((sequence, sequence), jnp.float32)))
    slot = (counts * chosen).sum(axis=-1) - 1
    return (slot[..., None] == jnp.arange(capacity)).astype(jnp.float32)


def _routed(x: jax.Array, router: jax.Array, capacity: int) -> tuple[jax.Array, jax.Array]:
    """The weight of each slot of each expert for a token, and the balance loss.

    [batch, sequence, width] -> [batch, sequence, experts, capacity] and [], both float32.
    """
    shares = softmax(x.astype(jnp.float32) @ router.astype(jnp.float32))
    chosen = jnp.argmax(shares, axis=-1, keepdims=True) == jnp.arange(shares.shape[-1])
    chosen = chosen.astype(jnp.float32)
    balance = shares.shape[-1] * (chosen.mean(axis=(0, 1)) * shares.mean(axis=(0, 1))).sum()
    return (shares * chosen)[..., None] * _slots(chosen, capacity)[:, :, None], balance


def _experts(x: jax.Array, layer: Tree, slack: float) -> tuple[jax.Array, jax.Array]:
    """The output of each token's expert, and the balance loss: [b, sequence, width] -> [b, sequence, width] and []."""
    capacity = math.ceil(slack * x.shape[1] / layer["router"].shape[1])
    combine, balance = _routed(x, layer["router"], capacity)
    inputs = jnp.einsum("bsec,bsw->ebcw", (combine > 0).astype(x.dtype), x)
    hidden = jnp.maximum(jnp.einsum("ebcw,ewh->ebch", inputs, layer["expand"].astype(x.dtype)), 0)
    outputs = jnp.einsum("ebch,ehw->ebcw", hidden, layer["contract"].astype(x.dtype))
    return jnp.einsum("bsec,ebcw->bsw", combine.astype(x.dtype), outputs), balance


def _states(weights: Tree, tokens: jax.Array, heads: int, slack: float) -> tuple[jax.Array, jax.Array]:
    """The last layer's output and the balance loss: [batch, sequence] -> [batch, sequence, width] and []."""
    x, balance = embedded(weights, tokens), jnp.zeros(())
    for layer in weights["layers"]:
        x = x + attention(layer_norm(x, layer["attention_norm"]), layer, heads)[0]
        y = layer_norm(x, layer["feed_forward_norm"])
        y, more = _experts(y, layer, slack) if "router" in layer else (feed_forward(y, layer), 0)
        x, balance = x + y, balance + more
    return x, balance


def _loss(weights: Tree, tokens: jax.Array, heads: int) -> jax.Array:
    """The cross-entropy of each next token and the balance loss: [batch, sequence + 1] of int32 -> []."""
    x, balance = _states(weights, tokens[:, :-1], heads, TRAINING_CAPACITY)
    return cross_entropy(logits(weights, x), tokens[:, 1:]) + BALANCE * balance


def _moments(weight: jax.ShapeDtypeStruct) -> Tree:
    """The abstract second moments of a weight: for a matrix the means of its rows and of its columns."""
    shape = weight.shape
    if len(shape) < 2:
        return {"full": abstract(*shape)}
    return {"rows": abstract(*shape[:-1]), "columns": abstract(*shape[:-2], shape[-1])}


def _estimate(moments: Tree) -> jax.Array:
    """The second moments of a weight, in the shape of the weight."""
    if "full" in moments:
        return moments["full"]
    rows = moments["rows"] / moments["rows"].mean(axis=-1, keepdims=True)
    return rows[..., None] * moments["columns"][..., None, :]


def _size(x: jax.Array) -> jax.Array:
    """The root of the mean square."""
    return jnp.sqrt(jnp.square(x).mean())


def _adafactor(weight: jax.Array, moments: Tree, gradient: jax.Array, time: jax.Array) -> tuple[jax.Array, Tree]:
    """A weight and its second moments after step number `time`."""
    squares = gradient * gradient + SMALLEST_SQUARE
    means = {"full": lambda: squares, "rows": lambda: squares.mean(axis=-1), "columns": lambda: squares.mean(axis=-2)}
    decay = 1 - time**-DECAY
    moments = {name: decay * moment + (1 - decay) * means[name]() for name, moment in moments.items()}
    update = gradient * lax.rsqrt(_estimate(moments))
    rate = jnp.maximum(SMALLEST_SCALE, _size(weight)) * jnp.minimum(RATE, lax.rsqrt(time))
    return weight - rate / jnp.maximum(1, _size(update)) * update, moments


def train_step(
    weights: Tree, moments: list[Tree], time: jax.Array, tokens: jax.Array, *, heads: int
) -> tuple[Tree, list[Tree], jax.Array, jax.Array]:
    """Weights, their second moments and the step number after one step, and the loss on `tokens` before it.

    Tokens are [batch, sequence + 1] of int32; `time` is [] of float32 and counts the steps done.
    """
    loss, gradients = jax.value_and_grad(_loss)(weights, tokens, heads)
    time = time + 1
    leaves, structure = jax.tree.flatten(weights)
    steps = [_adafactor(*leaf, time) for leaf in zip(leaves, moments, jax.tree.leaves(gradients), strict=True)]
    weights = jax.tree.unflatten(structure, [weight for weight, _ in steps])
    return weights, [moment for _, moment in steps], time, loss


def predict(weights: Tree, tokens: jax.Array, *, heads: int) -> jax.Array:
    """Scores of the token after the last: [batch, sequence] of int32 -> [batch, vocabulary]."""
    x, _ = _states(weights, tokens, heads, INFERENCE_CAPACITY)
    return logits(weights, x[:, -1])


def build(
    *,
    batch: int = 8,
    sequence: int = 512,
    depth: int = 24,
    width: int = 768,
    heads: int = 12,
    hidden: int = 3072,
    experts: int = 128,
    vocabulary: int = 32128,
    training: bool = True,
) -> Program:
    """One training step on a batch of token sequences, or the prediction of the next tokens.

    The default sizes are those of Switch-Base; the layers of its encoder and decoder form one stack.
    """
    layers = [_layer_weights(number, width, hidden, experts) for number in range(depth)]
    weights = network_weights(layers, width, sequence, vocabulary)
    if not training:
        weights = abstract_as(weights, jnp.bfloat16)
        return partial(predict, heads=heads), (weights, abstract(batch, sequence, dtype=jnp.int32))
    moments = [_moments(weight) for weight in jax.tree.leaves(weights)]
    tokens = abstract(batch, sequence + 1, dtype=jnp.int32)
    return partial(train_step, heads=heads), (weights, moments, abstract(), tokens)
