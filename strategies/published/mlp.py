"""A multilayer perceptron as a list of arrays: a call of a compiled function on them takes a tenth of a millisecond.

Calls on Equinox's modules take three, most of it in Python, which was most of the time of these strategies.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

Weights = list[tuple[jax.Array, jax.Array]]
"""The matrix and the constants of each layer."""


def new_weights(sizes: tuple[int, ...], seed: int) -> Weights:
    """Return random weights of layers from `sizes[i]` to `sizes[i + 1]` numbers (He et al. 2015)."""
    keys = jax.random.split(jax.random.key(seed), len(sizes) - 1)
    draw = jax.nn.initializers.he_uniform()
    return [(draw(k, (a, b)), jnp.zeros(b)) for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)]


def outputs(weights: Weights, inputs: jax.Array) -> jax.Array:
    """Return the `(n, outputs)` of `(n, inputs)`, with ReLU between the layers."""
    for matrix, constants in weights[:-1]:
        inputs = jax.nn.relu(inputs @ matrix + constants)
    return inputs @ weights[-1][0] + weights[-1][1]
