"""What a trained network predicts for kernels, in batches of few shapes."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from .batches import Batch, batched, pad
from .kernels import KernelGraphs
from .network import WIDTH, Network

_ROWS = 4096
"""Settings that are scored at a time."""


def embeddings(network: Network, graphs: KernelGraphs) -> NDArray[np.float32]:
    """Return `(k, WIDTH)` embeddings of kernels."""
    found = np.empty((len(graphs), WIDTH), np.float32)
    for kernels in batched(graphs):
        found[kernels] = np.asarray(_embed(network, pad(graphs, kernels)))[: len(kernels)]
    return found


def scores(
    network: Network,
    kind: str,
    embedded: NDArray[np.float32],
    rows: NDArray[np.float32],
    estimates: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return `(s,)` scores of settings.

    Args:
      embedded: `(s, WIDTH)` of their kernels.
      rows: `(s, f)` features.
      estimates: `(s,)` seconds by the analytical model.
    """
    found = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS):
        part = slice(start, start + _ROWS)
        padding = _ROWS - len(rows[part])
        own, given = (np.pad(array[part], ((0, padding), (0, 0))) for array in (embedded, rows))
        logs = np.pad(np.log(estimates[part]), (0, padding)).astype(np.float32)
        found[part] = np.asarray(_score(network, kind, own, given, logs))[: len(found[part])]
    return found


@eqx.filter_jit
def _embed(network: Network, batch: Batch) -> Array:
    return network.embed(batch)


@eqx.filter_jit
def _score(network: Network, kind: str, embedded: NDArray, rows: NDArray, logs: NDArray) -> Array:
    return network.score(kind, jnp.asarray(embedded), jnp.asarray(rows)[:, None], jnp.asarray(logs)[:, None])[:, 0]
