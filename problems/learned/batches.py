"""Batches of kernels of similar size, padded so that compiled code sees few shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .kernels import NODE_FEATURES, KernelGraphs

SIZES = (16, 32, 64, 128)
"""Nodes of a padded kernel."""
BATCH_NODES = 2048
"""Nodes of a batch, padding included."""


class Batch(NamedTuple):
    """Some kernels, b in all with padding, of n nodes each.

    Attributes:
      opcodes: `(b, n)`, 0 for padding.
      nodes: `(b, n, f)`.
      real: `(b, n)` False for padding.
      edges: `(b, m, 2)`; padding points to node n, which is none.
    """

    opcodes: NDArray[np.int16]
    nodes: NDArray[np.float32]
    real: NDArray[np.bool_]
    edges: NDArray[np.int16]


def batched(graphs: KernelGraphs, order: NDArray[np.int64] | None = None) -> Iterator[NDArray[np.int64]]:
    """Yield numbers of kernels that go into one batch; each is in one of them.

    Args:
      order: of the kernels; kernels of other sizes are between those of a batch.

    Raises:
      ValueError: a kernel has more nodes than fit.
    """
    sizes = np.diff(graphs.node_starts)
    order = np.arange(len(sizes)) if order is None else order
    bucket = np.searchsorted(SIZES, sizes[order])
    if bucket.max(initial=0) == len(SIZES):
        raise ValueError(f"a kernel has {sizes.max()} nodes; at most {SIZES[-1]} fit")
    for number, size in enumerate(SIZES):
        own = order[bucket == number]
        for start in range(0, len(own), BATCH_NODES // size):
            yield own[start : start + BATCH_NODES // size]


def pad(graphs: KernelGraphs, kernels: NDArray[np.int64]) -> Batch:
    """Return some kernels as a batch; its shape depends only on the bucket of the largest."""
    own = graphs.take(kernels)
    n = SIZES[int(np.searchsorted(SIZES, np.diff(own.node_starts).max()))]
    b, m = BATCH_NODES // n, 2 * n
    kernel, place = _places(own.node_starts)
    opcodes, real = np.zeros((b, n), np.int16), np.zeros((b, n), bool)
    nodes = np.zeros((b, n, len(NODE_FEATURES)), np.float32)
    opcodes[kernel, place], real[kernel, place], nodes[kernel, place] = own.opcodes, True, own.nodes
    edges = np.full((b, m, 2), n, np.int16)
    kernel, place = _places(own.edge_starts)
    few = place < m
    edges[kernel[few], place[few]] = own.edges[few]
    return Batch(opcodes, nodes, real, edges)


def filled(rows: NDArray, kernels: int) -> NDArray:
    """Return `(b, ...)` rows with zeros behind them, `kernels` in all."""
    padded = np.zeros((kernels, *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    return padded


def _places(starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each row the number of its kernel and its place there."""
    kernel = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return kernel, np.arange(len(kernel)) - starts[kernel]
