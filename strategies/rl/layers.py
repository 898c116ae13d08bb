"""The layers of the network: GraphSAGE over the computation graph, segmented attention over the parameters."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

SEGMENT = 128
_HEADS = 4
_HIDDEN = 2  # width of the feed-forward layer, in widths of the embedding


class SageLayer(eqx.Module):
    """A layer of GraphSAGE (Hamilton et al. 2017), with the max-pooling aggregator of its section 3.3.

    `h' = norm(h + relu(W [h; max over producers; max over consumers]))`, where neighbours send `relu(W_p h)`. Each
    direction of the edges has a `W_p` of its own. The sum with `h` and the normalisation are ours.
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
        # messages are never negative, so a node without neighbours receives 0
        below = jnp.maximum(jax.ops.segment_max(down[edges[:, 0]], edges[:, 1], n), 0)
        above = jnp.maximum(jax.ops.segment_max(up[edges[:, 1]], edges[:, 0], n), 0)
        joined = jnp.concatenate([h, below, above], axis=1)
        return jax.vmap(self.norm)(h + jax.nn.relu(jax.vmap(self.update)(joined)))


class SegmentedAttention(eqx.Module):
    """A layer of Transformer-XL (Dai et al. 2019) without positions, modulated by the whole graph.

    Each segment attends to itself and to the segment before it, through which no gradient flows (section 3.2). So
    memory grows linearly with the length. GO (Zhou et al. 2020) uses such layers and multiplies their output by a gate
    that is computed from the mean embedding of the graph ("superposition").
    """

    queries: eqx.nn.Linear
    keys: eqx.nn.Linear
    merge: eqx.nn.Linear
    inner: eqx.nn.Linear
    outer: eqx.nn.Linear
    gate: eqx.nn.Linear
    norms: tuple[eqx.nn.LayerNorm, eqx.nn.LayerNorm]

    def __init__(self, width: int, key: Array) -> None:
        k = jax.random.split(key, 6)
        self.queries = eqx.nn.Linear(width, width, use_bias=False, key=k[0])
        self.keys = eqx.nn.Linear(width, 2 * width, use_bias=False, key=k[1])
        self.merge = eqx.nn.Linear(width, width, key=k[2])
        self.inner = eqx.nn.Linear(width, _HIDDEN * width, key=k[3])
        self.outer = eqx.nn.Linear(_HIDDEN * width, width, key=k[4])
        self.gate = eqx.nn.Linear(width, width, key=k[5])
        self.norms = (eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width))

    def __call__(self, h: Array, real: Array) -> Array:
        """Return `(d, width)` embeddings; `d` is a multiple of the segment, `real` `(d,)` is false for padding."""
        h = jax.vmap(self.norms[0])(h + self._attend(h, real))
        h = h + jax.vmap(lambda row: self.outer(jax.nn.relu(self.inner(row))))(h)
        mean = (h * real[:, None]).sum(axis=0) / jnp.maximum(real.sum(), 1)
        return jax.vmap(self.norms[1])(2 * h * jax.nn.sigmoid(self.gate(mean)))

    def _attend(self, h: Array, real: Array) -> Array:
        width = h.shape[1]
        segments, mask = h.reshape(-1, SEGMENT, width), real.reshape(-1, SEGMENT)
        before = jax.lax.stop_gradient(jnp.concatenate([jnp.zeros_like(segments[:1]), segments[:-1]]))
        previous_mask = jnp.concatenate([jnp.zeros_like(mask[:1]), mask[:-1]])
        mixed = jax.vmap(self._segment)(segments, jnp.hstack([before, segments]), jnp.hstack([previous_mask, mask]))
        return jax.vmap(self.merge)(mixed.reshape(-1, width))

    def _segment(self, segment: Array, context: Array, mask: Array) -> Array:
        """Return `(segment, width)`: for each element the weighted mean of what it attends to in `(k, width)`."""
        q = jax.vmap(self.queries)(segment).reshape(len(segment), _HEADS, -1)
        k, v = jnp.split(jax.vmap(self.keys)(context).reshape(len(context), _HEADS, -1), 2, axis=2)
        scores = jnp.einsum("qhc,khc->hqk", q, k) / jnp.sqrt(q.shape[2])
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=2)
        return jnp.einsum("hqk,khc->qhc", weights, v).reshape(segment.shape)
