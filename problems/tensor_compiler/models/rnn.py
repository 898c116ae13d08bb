"""An LSTM language model (Hochreiter and Schmidhuber, Long Short-Term Memory, 1997).

The network and its training by SGD with clipped gradients follow Zaremba et al., Recurrent Neural Network
Regularization, 2014, without dropout. Time steps are scanned, so that they lower to while loops.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from . import Program
from .layers import Tree, abstract, cross_entropy, dense, dense_weights, lstm, softmax
from .sequence import clipped

LEARNING_RATE = 1.0
LARGEST_NORM = 5.0


def _weights(depth: int, hidden: int, vocabulary: int) -> Tree:
    """The abstract weights of the network."""
    return {
        "embedding": abstract(vocabulary, hidden),
        "layers": [dense_weights(2 * hidden, 4 * hidden) for _ in range(depth)],
        "output": dense_weights(hidden, vocabulary),
    }


def _cell(layer: Tree, state: Tree, x: jax.Array) -> tuple[Tree, jax.Array]:
    """One time step of a layer: its state and [batch, hidden] -> its next state and [batch, hidden]."""
    gates = dense(jnp.concatenate([x, state["hidden"]], axis=-1), layer)
    hidden, memory = lstm(gates, state["memory"])
    return {"hidden": hidden, "memory": memory}, hidden


def _outputs(weights: Tree, states: list[Tree], tokens: jax.Array) -> tuple[jax.Array, list[Tree]]:
    """The last layer's outputs and the layers' last states: [batch, sequence] of int32 -> [sequence, batch, hidden]."""
    x = jnp.take(weights["embedding"], tokens.T, axis=0, mode="clip")
    last = []
    for layer, state in zip(weights["layers"], states, strict=True):
        state, x = lax.scan(partial(_cell, layer), state, x)
        last.append(state)
    return x, last


def _loss(weights: Tree, states: list[Tree], tokens: jax.Array) -> tuple[jax.Array, list[Tree]]:
    """The cross-entropy of each next token and the layers' last states: [batch, sequence + 1] of int32 -> []."""
    x, last = _outputs(weights, states, tokens[:, :-1])
    return cross_entropy(dense(x, weights["output"]), tokens[:, 1:].T), last


def train_step(weights: Tree, states: list[Tree], tokens: jax.Array) -> tuple[Tree, list[Tree], jax.Array]:
    """Weights and layer states after one step, and the loss on `tokens` before it.

    Tokens are [batch, sequence + 1] of int32; a layer's state is its hidden and memory cells, [batch, hidden] each.
    """
    (loss, states), gradients = jax.value_and_grad(_loss, has_aux=True)(weights, states, tokens)
    gradients = clipped(gradients, LARGEST_NORM)
    weights = jax.tree.map(lambda w, g: w - LEARNING_RATE * g, weights, gradients)
    return weights, states, loss


def predict(weights: Tree, states: list[Tree], tokens: jax.Array) -> tuple[jax.Array, list[Tree]]:
    """Probabilities of the token after the last, and the states: [batch, sequence] of int32 -> [batch, vocabulary]."""
    x, states = _outputs(weights, states, tokens)
    return softmax(dense(x[-1], weights["output"])), states


def build(
    *,
    batch: int = 512,
    sequence: int = 64,
    depth: int = 2,
    hidden: int = 512,
    vocabulary: int = 8192,
    training: bool = True,
) -> Program:
    """One training step on a batch of token sequences, or the prediction of the next token."""
    states = [{"hidden": abstract(batch, hidden), "memory": abstract(batch, hidden)} for _ in range(depth)]
    tokens = abstract(batch, sequence + training, dtype=jnp.int32)
    return train_step if training else predict, (_weights(depth, hidden, vocabulary), states, tokens)
