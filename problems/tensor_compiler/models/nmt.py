"""Translation by LSTMs with attention (Wu et al., Google's Neural Machine Translation System, 2016).

The encoder's first layer reads in both directions, layers from the third on are residual, and every decoder layer takes
the context that the attention computes from the state of the bottom layer. Time steps are scanned. Training is by Adam
with clipped gradients, without dropout; token 0 is padding. Weights are float32, compute is bfloat16 except for the
LSTMs' memory; inference has all weights in bfloat16.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, dense, dense_weights, lstm, softmax
from .sequence import Adam, abstract_as, counted_cross_entropy, masked

PADDING = 0
PLAIN_LAYERS = 2  # layers at the bottom that are not residual
ADAM = Adam(rate=2e-4, largest_norm=5.0)


def _layer_weights(inputs: int, units: int) -> Tree:
    """The abstract weights of an LSTM layer."""
    return dense_weights(inputs, 4 * units) | {"recurrent": abstract(units, 4 * units)}


def _weights(depth: int, units: int, vocabulary: int) -> Tree:
    """The abstract weights of the network."""
    encoder = [_layer_weights(2 * units if layer == 0 else units, units) for layer in range(depth - 1)]
    return {
        "source": abstract(vocabulary, units),
        "target": abstract(vocabulary, units),
        "forward": _layer_weights(units, units),
        "backward": _layer_weights(units, units),
        "encoder": encoder,
        "attention": {"query": abstract(units, units), "key": abstract(units, units), "vector": abstract(units)},
        "decoder": [_layer_weights(2 * units, units) for _ in range(depth)],
        "output": dense_weights(units, vocabulary),
    }


def _halved(weights: Tree) -> Tree:
    """The weights in bfloat16, the type of the computation."""
    return jax.tree.map(lambda weight: weight.astype(jnp.bfloat16), weights)


def _cell(layer: Tree, cell: Tree, gates: jax.Array) -> tuple[Tree, jax.Array]:
    """One time step: a layer's state and its gates by the inputs, [batch, 4 * units] -> the state, [batch, units]."""
    gates = (gates + cell["hidden"] @ layer["recurrent"]).astype(jnp.float32)
    hidden, memory = lstm(gates, cell["memory"])
    cell = {"hidden": hidden.astype(jnp.bfloat16), "memory": memory}
    return cell, cell["hidden"]


def _start(batch: int, units: int) -> Tree:
    """The state of a layer before the first time step: [batch, units] each."""
    return {"hidden": jnp.zeros((batch, units), jnp.bfloat16), "memory": jnp.zeros((batch, units))}


def _layer(x: jax.Array, layer: Tree, reverse: bool = False) -> jax.Array:
    """An encoder layer over all time steps: [sequence, batch, inputs] -> [sequence, batch, units]."""
    start = _start(x.shape[1], layer["recurrent"].shape[0])
    return lax.scan(partial(_cell, layer), start, dense(x, layer), reverse=reverse)[1]


def encode(weights: Tree, source: jax.Array) -> Tree:
    """The memory of the attention: keys and values, [sequence, batch, units], and real tokens, [batch, sequence]."""
    x = jnp.take(weights["source"], source.T, axis=0, mode="clip")
    both = _layer(x, weights["forward"]), _layer(x, weights["backward"], reverse=True)
    x = jnp.concatenate(both, axis=-1)
    for number, layer in enumerate(weights["encoder"], start=1):
        y = _layer(x, layer)
        x = x + y if number >= PLAIN_LAYERS else y
    return {"keys": x @ weights["attention"]["key"], "values": x, "real": source != PADDING}


def _attended(weights: Tree, memory: Tree, hidden: jax.Array) -> jax.Array:
    """The context for a decoder state, by attention with one hidden layer: [batch, units] -> [batch, units]."""
    energies = jnp.tanh(memory["keys"] + hidden @ weights["query"]) @ weights["vector"]
    shares = softmax(masked(energies.T.astype(jnp.float32), memory["real"]))
    return jnp.einsum("bs,sbu->bu", shares.astype(hidden.dtype), memory["values"])


def _decode(weights: Tree, memory: Tree, state: Tree, x: jax.Array) -> tuple[Tree, jax.Array]:
    """One time step of the decoder: its state and [batch, units] -> its next state and [batch, units]."""
    context, cells = state["context"], []
    for number, (layer, cell) in enumerate(zip(weights["decoder"], state["cells"], strict=True)):
        cell, y = _cell(layer, cell, dense(jnp.concatenate([x, context], axis=-1), layer))
        cells.append(cell)
        context = context if number else _attended(weights["attention"], memory, y)
        x = x + y if number >= PLAIN_LAYERS else y
    return {"context": context, "cells": cells}, x


def _logits(weights: Tree, source: jax.Array, target: jax.Array) -> jax.Array:
    """Scores of each next token: [batch, s] and [batch, t] of int32 -> [t, batch, vocabulary]."""
    batch, units = source.shape[0], weights["target"].shape[1]
    memory = encode(weights, source)
    cells = [_start(batch, units) for _ in weights["decoder"]]
    state = {"context": jnp.zeros((batch, units), jnp.bfloat16), "cells": cells}
    x = jnp.take(weights["target"], target.T, axis=0, mode="clip")
    _, x = lax.scan(partial(_decode, weights, memory), state, x)
    return dense(x, weights["output"])


def _loss(weights: Tree, source: jax.Array, target: jax.Array) -> jax.Array:
    """The cross-entropy of each next token that is not padding: [batch, s] and [batch, t + 1] of int32 -> []."""
    labels = target[:, 1:].T
    return counted_cross_entropy(_logits(_halved(weights), source, target[:, :-1]), labels, labels != PADDING)


def decode_step(weights: Tree, memory: Tree, state: Tree, tokens: jax.Array) -> tuple[jax.Array, Tree]:
    """The likeliest token after each of `tokens`, [batch] of int32, and the next state; `encode` returns the memory."""
    state, x = _decode(weights, memory, state, jnp.take(weights["target"], tokens, axis=0, mode="clip"))
    return jnp.argmax(dense(x, weights["output"]), axis=-1), state


def _decoder_arguments(batch: int, sequence: int, depth: int, units: int) -> tuple[Tree, Tree, jax.ShapeDtypeStruct]:
    """The abstract arguments of `decode_step` after the weights."""
    half, single = abstract(batch, units, dtype=jnp.bfloat16), abstract(batch, units)
    encoded = abstract(sequence, batch, units, dtype=jnp.bfloat16)
    memory = {"keys": encoded, "values": encoded, "real": abstract(batch, sequence, dtype=jnp.bool_)}
    state = {"context": half, "cells": [{"hidden": half, "memory": single} for _ in range(depth)]}
    return memory, state, abstract(batch, dtype=jnp.int32)


def build(
    *,
    batch: int = 128,
    sequence: int = 50,
    depth: int = 8,
    units: int = 1024,
    vocabulary: int = 32000,
    training: bool = True,
    decode: bool = False,
) -> Program:
    """One training step on pairs of sentences, the encoding of sentences, or with `decode` one token of each."""
    weights = _weights(depth, units, vocabulary)
    source = abstract(batch, sequence, dtype=jnp.int32)
    if training:
        target = abstract(batch, sequence + 1, dtype=jnp.int32)
        return ADAM.training(_loss, weights, source, target)
    weights = abstract_as(weights, jnp.bfloat16)
    if not decode:
        return encode, (weights, source)
    return decode_step, (weights, *_decoder_arguments(batch, sequence, depth, units))
