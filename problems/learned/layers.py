"""The layers of the network: GraphSAGE over the operations of a kernel, and reductions of these to the kernel."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

REDUCTIONS = ("mean", "max", "sum", "lstm", "transformer")
"""How the embeddings of a kernel's operations become one of the kernel."""
_HEADS = 4
_TYPICAL = 8.0  # operations; sums are divided by it


def dense(layer: eqx.nn.Linear, h: Array) -> Array:
    """Apply a layer to the last axis."""
    product = h @ layer.weight.T
    return product if layer.bias is None else product + layer.bias


class SageLayer(eqx.Module):
    """A layer of GraphSAGE (Hamilton et al. 2017) with the mean aggregator, separately over producers and consumers.

    `h' = norm(h + relu(W [h; mean over producers; mean over consumers]))`; the sum with `h` and the norm are ours.
    """

    update: eqx.nn.Linear
    norm: eqx.nn.LayerNorm

    def __init__(self, width: int, key: Array) -> None:
        self.update, self.norm = eqx.nn.Linear(3 * width, width, key=key), eqx.nn.LayerNorm(width)

    def __call__(self, h: Array, below: Array, above: Array) -> Array:
        """Return `(b, n, width)` embeddings; the `(b, n, n)` matrices average over producers, and over consumers."""
        joined = jnp.concatenate([h, below @ h, above @ h], axis=2)
        return jax.vmap(jax.vmap(self.norm))(h + jax.nn.relu(dense(self.update, joined)))


def averages(edges: Array, n: int) -> tuple[Array, Array]:
    """Return the `(b, n, n)` matrices that average over producers, and over consumers, of `(b, m, 2)` edges."""
    kernels = jnp.arange(len(edges))[:, None]
    adjacent = jnp.zeros((len(edges), n, n)).at[kernels, edges[:, :, 1], edges[:, :, 0]].set(1.0, mode="drop")
    return _rows_averaged(adjacent), _rows_averaged(adjacent.swapaxes(1, 2))


def _rows_averaged(matrix: Array) -> Array:
    return matrix / jnp.maximum(matrix.sum(axis=2, keepdims=True), 1.0)


class Reduction(eqx.Module):
    """One of `REDUCTIONS`; nodes are in topological order, which only the LSTM sees."""

    kind: str = eqx.field(static=True)
    cell: eqx.nn.LSTMCell | None
    attention: eqx.nn.MultiheadAttention | None

    def __init__(self, kind: str, width: int, key: Array) -> None:
        self.kind = kind
        self.cell = eqx.nn.LSTMCell(width, width, key=key) if kind == "lstm" else None
        self.attention = eqx.nn.MultiheadAttention(_HEADS, width, key=key) if kind == "transformer" else None

    def __call__(self, h: Array, real: Array) -> Array:
        """Return `(b, width)` embeddings of kernels from `(b, n, width)` of their nodes, of which `(b, n)` are real."""
        if self.cell is not None:
            return jax.vmap(self._last)(h, real)
        if self.attention is not None:
            h = h + jax.vmap(self._attend)(h, real)
        shown = jnp.where(real[:, :, None], h, 0.0)
        if self.kind == "max":
            return jnp.where(real[:, :, None], h, -1e9).max(axis=1, initial=-10.0)
        total = shown.sum(axis=1)
        return total / _TYPICAL if self.kind == "sum" else total / jnp.maximum(real.sum(axis=1, keepdims=True), 1)

    def _attend(self, h: Array, real: Array) -> Array:
        assert self.attention is not None
        mask = jnp.broadcast_to(real[None, :] | ~real.any(), (len(h), len(h)))
        return self.attention(h, h, h, mask=mask)

    def _last(self, h: Array, real: Array) -> Array:
        """Return the state of the LSTM after the last real node."""

        def step(state: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
            assert self.cell is not None
            value, is_real = row
            new = self.cell(value, state)
            return (jnp.where(is_real, new[0], state[0]), jnp.where(is_real, new[1], state[1])), None

        start = (jnp.zeros(h.shape[1]), jnp.zeros(h.shape[1]))
        return jax.lax.scan(step, start, (h, real))[0][0]
