"""Embeds the nodes of a graph: GraphSAGE (Hamilton et al. 2017)."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array


class SageLayer(eqx.Module):
    """`h' = norm(h + relu(W [h; max over producers; max over consumers]))`, neighbours seen through `relu(W_p h)`.

    The max-pooling aggregator of section 3.3, with the two directions of the edges apart, a `W_p` each. The sum with
    `h` and the normalisation are ours.
    """

    pool: eqx.nn.Linear
    update: eqx.nn.Linear
    norm: eqx.nn.LayerNorm

    def __init__(self, width: int, key: Array) -> None:
        first, second = jax.random.split(key)
        self.pool = eqx.nn.Linear(width, 2 * width, key=first)
        self.update = eqx.nn.Linear(3 * width, width, key=second)
        self.norm = eqx.nn.LayerNorm(width)

    def __call__(self, h: Array, edges: Array) -> Array:
        """Return `(n, width)` embeddings from those of the layer before and `(m, 2)` producers and consumers."""
        down, up = jnp.split(jax.nn.relu(jax.vmap(self.pool)(h)), 2, axis=1)
        n = len(h)
        # messages are not negative, so 0 is what a node without neighbours receives
        below = jnp.maximum(jax.ops.segment_max(down[edges[:, 0]], edges[:, 1], n), 0)
        above = jnp.maximum(jax.ops.segment_max(up[edges[:, 1]], edges[:, 0], n), 0)
        joined = jnp.concatenate([h, below, above], axis=1)
        return jax.vmap(self.norm)(h + jax.nn.relu(jax.vmap(self.update)(joined)))
