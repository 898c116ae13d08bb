"""DLRM (Naumov et al., Deep Learning Recommendation Model, 2019), training and scoring.

The interactions are products of all pairs of the rows of the embedding tables and the output of the bottom network. The
top network turns them into the probability of a click. A training step updates only the rows that it reads, by SGD or
Adagrad; a row that it reads twice is updated with the sum of both squared gradients. Everything is float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import Program
from .layers import Tree, abstract, dense, dense_weights

# Rows of the tables for the categorical features of the Criteo data sets: Kaggle as the paper uses it, Terabyte with
# at most 40 million rows a table as MLPerf trains it.
DATA = {
    "kaggle": [
        *(1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194),
        *(27, 14992, 5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572),
    ],
    "terabyte": [
        *(39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10),
        *(2208, 11938, 155, 4, 976, 14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36),
    ],
}
FEATURES = 13  # numeric features
LEARNING_RATE = 0.1
EPSILON = 1e-10


def _network_weights(*sizes: int) -> list[Tree]:
    """The abstract weights of a fully connected network with layers of these sizes."""
    return [dense_weights(inputs, outputs) for inputs, outputs in pairwise(sizes)]


def _weights(rows: Sequence[int], bottom: Sequence[int], top: Sequence[int]) -> Tree:
    """The abstract weights of the networks and the tables; a row is as wide as the bottom network's output."""
    width, vectors = bottom[-1], len(rows) + 1
    return {
        "bottom": _network_weights(FEATURES, *bottom),
        "top": _network_weights(width + vectors * (vectors - 1) // 2, *top, 1),
        "tables": [abstract(count, width) for count in rows],
    }


def _read(tables: list[jax.Array], indices: jax.Array) -> list[jax.Array]:
    """The rows that are looked up in each table: [batch, tables, lookups] of int32 -> [batch, lookups, width] each."""
    return [jnp.take(table, indices[:, number], axis=0, mode="clip") for number, table in enumerate(tables)]


def _interactions(vectors: jax.Array) -> jax.Array:
    """Products of all pairs of vectors: [batch, vectors, width] -> [batch, vectors * (vectors - 1) / 2]."""
    count = vectors.shape[1]
    products = jnp.einsum("bvw,bxw->bvx", vectors, vectors).reshape(-1, count * count)
    rows, columns = np.tril_indices(count, -1)
    return jnp.take(products, rows * count + columns, axis=1, mode="clip")


def _logits(networks: Tree, rows: list[jax.Array], features: jax.Array) -> jax.Array:
    """Logits of a click: rows of [batch, lookups, width], [batch, features] -> [batch]."""
    x = features
    for layer in networks["bottom"]:
        x = jnp.maximum(dense(x, layer), 0)
    vectors = jnp.stack([x, *(row.sum(axis=1) for row in rows)], axis=1)
    x = jnp.concatenate([x, _interactions(vectors)], axis=1)
    for layer in networks["top"][:-1]:
        x = jnp.maximum(dense(x, layer), 0)
    return dense(x, networks["top"][-1])[:, 0]


def _loss(networks: Tree, rows: list[jax.Array], features: jax.Array, clicks: jax.Array) -> jax.Array:
    """The binary cross-entropy of the clicks, [batch] of float32: -> []."""
    logits = _logits(networks, rows, features)
    return (jnp.maximum(logits, 0) - logits * clicks + jnp.log1p(jnp.exp(-jnp.abs(logits)))).mean()


def _gradients(
    weights: Tree, features: jax.Array, indices: jax.Array, clicks: jax.Array
) -> tuple[jax.Array, Tree, list[jax.Array]]:
    """The loss and its gradients by the networks and by the rows that are looked up."""
    networks = {name: weights[name] for name in ("bottom", "top")}
    rows = _read(weights["tables"], indices)
    loss, gradients = jax.value_and_grad(_loss, argnums=(0, 1))(networks, rows, features, clicks)
    return loss, *gradients


def _added(tables: list[jax.Array], indices: jax.Array, rows: list[jax.Array]) -> list[jax.Array]:
    """The tables with [batch, lookups, width] added to the rows that are looked up in each."""
    return [
        table.at[indices[:, i]].add(row, mode="drop") for i, (table, row) in enumerate(zip(tables, rows, strict=True))
    ]


def sgd_step(weights: Tree, features: jax.Array, indices: jax.Array, clicks: jax.Array) -> tuple[Tree, jax.Array]:
    """Weights after one step of SGD, and the loss on the batch before it.

    Features are [batch, 13] of float32, indices [batch, tables, lookups] of int32, clicks [batch] of float32.
    """
    loss, networks, rows = _gradients(weights, features, indices, clicks)
    updated = {
        name: jax.tree.map(lambda w, g: w - LEARNING_RATE * g, weights[name], networks[name]) for name in networks
    }
    steps = [-LEARNING_RATE * row for row in rows]
    return updated | {"tables": _added(weights["tables"], indices, steps)}, loss


def _adagrad(gradient: jax.Array, total: jax.Array) -> jax.Array:
    """A step of Adagrad (Duchi et al., 2011), given the sum of all squared gradients: elementwise."""
    return -LEARNING_RATE * gradient / (jnp.sqrt(total) + EPSILON)


def adagrad_step(
    weights: Tree, sums: Tree, features: jax.Array, indices: jax.Array, clicks: jax.Array
) -> tuple[Tree, Tree, jax.Array]:
    """Weights and their sums of squared gradients after one step of Adagrad, and the loss on the batch before it."""
    loss, networks, rows = _gradients(weights, features, indices, clicks)
    totals = {name: sums[name] for name in networks}
    totals = jax.tree.map(lambda total, gradient: total + gradient * gradient, totals, networks)
    tables = _added(sums["tables"], indices, [row * row for row in rows])
    updated = {name: weights[name] for name in networks}
    updated = jax.tree.map(lambda w, g, total: w + _adagrad(g, total), updated, networks, totals)
    steps = [_adagrad(row, total) for row, total in zip(rows, _read(tables, indices), strict=True)]
    weights = updated | {"tables": _added(weights["tables"], indices, steps)}
    return weights, totals | {"tables": tables}, loss


def score(weights: Tree, features: jax.Array, indices: jax.Array) -> jax.Array:
    """Probabilities of a click: [batch, 13], [batch, tables, lookups] of int32 -> [batch]."""
    return lax.logistic(_logits(weights, _read(weights["tables"], indices), features))


def build(
    *,
    batch: int = 2048,
    data: str = "terabyte",
    lookups: int = 1,
    bottom: Sequence[int] = (512, 256, 128),
    top: Sequence[int] = (1024, 1024, 512, 256),
    largest: int = 40_000_000,
    training: bool = True,
    adagrad: bool = False,
) -> Program:
    """One training step on a batch of impressions, or their scores; the default sizes are those of MLPerf.

    The tables are those for `data`, kaggle or terabyte, with at most `largest` rows each; `lookups` rows of each are
    summed.
    """
    weights = _weights([min(count, largest) for count in DATA[data]], bottom, top)
    features, indices = abstract(batch, FEATURES), abstract(batch, len(DATA[data]), lookups, dtype=jnp.int32)
    if not training:
        return score, (weights, features, indices)
    if adagrad:
        return adagrad_step, (weights, weights, features, indices, abstract(batch))
    return sgd_step, (weights, features, indices, abstract(batch))
