"""The network of a learned cost model: kernels are embedded by GraphSAGE, and heads predict their times."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from .batches import Batch
from .features import KERNEL_FEATURES
from .kernels import NODE_FEATURES, OPCODES
from .layers import Reduction, SageLayer, averages, dense

WIDTH = 48
_OPCODE_WIDTH = 16
_LAYERS = 3
_HIDDEN = 64
RANKED = 10.0
"""What a score that is only ranked starts from: this many times the log of a time."""


class Encoder(eqx.Module):
    """Embeds the graph of a kernel."""

    opcode: Array
    first: eqx.nn.Linear
    layers: list[SageLayer]
    reduction: Reduction

    def __init__(self, reduction: str, key: Array) -> None:
        keys = jax.random.split(key, _LAYERS + 3)
        self.opcode = 0.1 * jax.random.normal(keys[0], (len(OPCODES), _OPCODE_WIDTH))
        self.first = eqx.nn.Linear(_OPCODE_WIDTH + len(NODE_FEATURES), WIDTH, key=keys[1])
        self.layers = [SageLayer(WIDTH, k) for k in keys[3:]]
        self.reduction = Reduction(reduction, WIDTH, keys[2])

    def __call__(self, opcodes: Array, nodes: Array, real: Array, edges: Array) -> Array:
        """Return `(b, WIDTH)` embeddings of a batch; see `Batch`."""
        h = jax.nn.relu(dense(self.first, jnp.concatenate([self.opcode[opcodes], nodes], axis=2)))
        below, above = averages(edges, h.shape[1])
        for layer in self.layers:
            h = layer(h, below, above)
        return self.reduction(h, real)


class Head(eqx.Module):
    """Adds to the log of the analytical model's estimate what it gets wrong."""

    layers: list[eqx.nn.Linear]
    scale: Array

    def __init__(self, scale: float, key: Array) -> None:
        keys = jax.random.split(key, 3)
        widths = (WIDTH + len(KERNEL_FEATURES), _HIDDEN, _HIDDEN, 1)
        self.layers = [eqx.nn.Linear(a, b, key=k) for a, b, k in zip(widths, widths[1:], keys, strict=False)]
        self.scale = jnp.log(jnp.array(scale))

    def __call__(self, embedding: Array, features: Array, logs: Array) -> Array:
        """Return scores `(...,)` from `(..., WIDTH)` embeddings, `(..., f)` features, and logs of the estimates."""
        h = jnp.concatenate([embedding, features], axis=-1)
        for layer in self.layers[:-1]:
            h = jax.nn.relu(dense(layer, h))
        return jnp.exp(self.scale) * (logs + dense(self.layers[-1], h)[..., 0])


class Standard(eqx.Module):
    """Means and deviations of features in the training data; they are not trained."""

    mean: Array
    deviation: Array

    @classmethod
    def of(cls, rows: NDArray[np.float32]) -> Standard:
        """Return those of `(m, f)` rows; a feature that never changes is left as it is."""
        deviation = rows.std(axis=0)
        return cls(jnp.asarray(rows.mean(axis=0)), jnp.asarray(np.where(deviation > 1e-6, deviation, 1.0)))

    def __call__(self, rows: Array) -> Array:
        """Return features of mean 0 and deviation 1, cut off where no training data is near."""
        mean, deviation = jax.lax.stop_gradient((self.mean, self.deviation))
        return jnp.clip((rows - mean) / deviation, -4.0, 4.0)


class Network(eqx.Module):
    """An encoder and the heads that share it, by what they predict: `graph`, or `tiles` and `flags`."""

    nodes: Standard
    kernels: Standard
    encoder: Encoder
    heads: dict[str, Head]

    def __init__(
        self,
        nodes: Standard,
        kernels: Standard,
        kinds: tuple[str, ...],
        reduction: str,
        key: Array,
        scale: float = 1.0,
    ) -> None:
        first, *keys = jax.random.split(key, 1 + len(kinds))
        self.nodes, self.kernels, self.encoder = nodes, kernels, Encoder(reduction, first)
        self.heads = {kind: Head(scale, k) for kind, k in zip(kinds, keys, strict=True)}

    def embed(self, batch: Batch) -> Array:
        """Return `(b, WIDTH)` embeddings of kernels."""
        opcodes, nodes, real, edges = map(jnp.asarray, batch)
        return self.encoder(opcodes, self.nodes(nodes), real, edges)

    def score(self, kind: str, embedding: Array, features: Array, estimates: Array) -> Array:
        """Return `(b, c)` scores of c settings each: the log of the seconds, or for relative models an order.

        Args:
          embedding: `(b, WIDTH)`.
          features: `(b, c, f)` of the kernels with the settings.
          estimates: `(b, c)` logs of the analytical model's seconds.
        """
        wide = jnp.broadcast_to(embedding[:, None], (*features.shape[:2], embedding.shape[1]))
        return self.heads[kind](wide, self.kernels(features), estimates)
