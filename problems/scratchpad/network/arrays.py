"""A network as arrays, for compiled code; axes are padded to `AXES`, dimensions to `DIMS`, operands to `OPERANDS`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .graph import Network

DIMS, OPERANDS, AXES = 8, 5, 4


class Arrays(NamedTuple):
    """Operators and tensors.

    Attributes:
      extents, reduced, tiled: `(ops, DIMS)` of each dimension; unused ones have extent 1.
      tiles: `(ops,)` the number of dimensions that may be tiled.
      reads: `(ops,)` the number of operands that are read; the next one is written.
      moves: `(ops,)` whether an operator only rearranges a tensor.
      tensors: `(ops, OPERANDS)` the tensor of each operand, -1 for none.
      dims, strides, windows, pads: `(ops, OPERANDS, AXES)` the map of each operand; `windows` are extents.
      sizes: `(tensors, AXES)`, 1 for unused axes.
      ranks, bytes, roles: `(tensors,)`.
      kinds: `(ops,)` a number that equal operators share.
    """

    extents: NDArray[np.int64]
    reduced: NDArray[np.bool_]
    tiled: NDArray[np.bool_]
    tiles: NDArray[np.int64]
    reads: NDArray[np.int64]
    moves: NDArray[np.bool_]
    tensors: NDArray[np.int64]
    dims: NDArray[np.int64]
    strides: NDArray[np.int64]
    windows: NDArray[np.int64]
    pads: NDArray[np.int64]
    sizes: NDArray[np.int64]
    ranks: NDArray[np.int64]
    bytes: NDArray[np.int64]
    roles: NDArray[np.int64]
    kinds: NDArray[np.int64]


def arrays(network: Network) -> Arrays:
    """Return the arrays of a network."""
    ops, tensors = len(network.operators), len(network.tensors)
    maps = (ops, OPERANDS, AXES)
    found = Arrays(
        extents=np.ones((ops, DIMS), np.int64),
        reduced=np.zeros((ops, DIMS), bool),
        tiled=np.zeros((ops, DIMS), bool),
        tiles=np.array([len(op.tiled) for op in network.operators]),
        reads=np.array([len(op.operands) - 1 for op in network.operators]),
        moves=np.array([op.moves for op in network.operators]),
        tensors=np.full((ops, OPERANDS), -1, np.int64),
        dims=np.zeros(maps, np.int64),
        strides=np.ones(maps, np.int64),
        windows=np.ones(maps, np.int64),
        pads=np.zeros(maps, np.int64),
        sizes=np.ones((tensors, AXES), np.int64),
        ranks=np.array([len(t.shape) for t in network.tensors]),
        bytes=np.array([t.bytes for t in network.tensors]),
        roles=np.array([int(t.role) for t in network.tensors]),
        kinds=np.zeros(ops, np.int64),
    )
    for t, tensor in enumerate(network.tensors):
        found.sizes[t, : len(tensor.shape)] = tensor.shape
    kinds: dict[object, int] = {}
    for o, op in enumerate(network.operators):
        shapes = tuple((network.tensors[x.tensor].shape, network.tensors[x.tensor].bytes) for x in op.operands)
        maps_of = tuple(x.axes for x in op.operands)
        found.kinds[o] = kinds.setdefault((op.extents, op.reduced, op.whole, maps_of, shapes), len(kinds))
        found.extents[o, : len(op.extents)] = op.extents
        found.reduced[o, : len(op.extents)] = op.reduced
        found.tiled[o, op.tiled] = True
        for x, operand in enumerate(op.operands):
            found.tensors[o, x] = operand.tensor
            for a, axis in enumerate(operand.axes):
                found.dims[o, x, a], found.strides[o, x, a], found.pads[o, x, a] = axis.dim, axis.stride, axis.pad
                found.windows[o, x, a] = op.extents[axis.window] if axis.window >= 0 else 1
    return found
