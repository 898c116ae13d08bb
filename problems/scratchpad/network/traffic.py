"""The bytes that one operand moves between DRAM and the scratchpad, in closed form.

The loops outside an operand's buffer are those over blocks of its group, and the first `level` tile loops of its
operator. They cut each dimension into pieces: by the block, then by the tile. A box of the operand, one piece of each
axis, is moved when it changes. Loops outside the last one that changes it, over dimensions that the operand does not
have, move everything again. A box is moved in runs of consecutive elements, each in whole granules.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from .arrays import AXES, DIMS, Arrays


class Loops(NamedTuple):
    """How one operator is tiled.

    Attributes:
      tile: `(DIMS,)` the tile of each dimension.
      order: `(DIMS,)` the dimensions of the tile loops, the outermost first.
      blocks: `(DIMS,)` the block of each dimension; its extent if the group has no loop over it.
      streams: `(2,)` the dimensions of the group's loops, the outer one first, -1 for none.
    """

    tile: NDArray[np.int64]
    order: NDArray[np.int64]
    blocks: NDArray[np.int64]
    streams: NDArray[np.int64]


@compiled(runtime=False)
def pieces(extent: int, block: int, tile: int) -> int:
    """Return how many pieces a dimension is cut into."""
    rest = extent % block
    return (extent // block) * ((block + tile - 1) // tile) + (rest + tile - 1) // tile


@compiled()
def traffic(
    net: Arrays, op: int, x: int, loops: Loops, level: int, fast: NDArray, size: int, granule: int, out: NDArray
) -> None:
    """Write how an operand moves: bytes of one pass, passes, whether its box changes, elements of the largest box.

    Args:
      op, x: the operator, and the operand's place.
      level: how many tile loops are outside the buffer.
      fast: `(AXES,)` the axes of the tensor from the fastest varying.
      size: bytes of an element.
      out: `(4,)` int64.
    """
    block, tile, inside = np.empty(DIMS, np.int64), np.empty(DIMS, np.int64), np.zeros(DIMS, np.bool_)
    _loops(net, op, x, loops, level, block, tile, inside, out)
    tensor = net.tensors[op, x]
    run, total, box = 1, -1, 1
    for place in range(net.ranks[tensor]):
        axis = fast[place]
        d, stride, window = net.dims[op, x, axis], net.strides[op, x, axis], net.windows[op, x, axis]
        extent, full = net.extents[op, d], net.sizes[tensor, axis]
        plain = stride == 1 and window == 1 and net.pads[op, x, axis] == 0
        touched, longest = full, min(block[d], tile[d])
        if not plain:
            touched, longest = _window(net, op, x, axis, extent, block[d], tile[d])
        box *= longest
        if total >= 0:
            total *= touched
        elif longest == full and pieces(extent, block[d], tile[d]) == 1 and stride <= window:
            run *= full
        elif plain:
            total = _runs(extent, block[d], tile[d], run * size, granule)
        else:
            total = _window_runs(net, op, x, axis, extent, block[d], tile[d], run * size, granule)
    if total < 0:
        total = _granules(run * size, granule)
    out[0], out[3] = total, box


@compiled(runtime=False)
def _loops(
    net: Arrays,
    op: int,
    x: int,
    loops: Loops,
    level: int,
    block: NDArray,
    tile: NDArray,
    inside: NDArray,
    out: NDArray,
) -> None:
    """Set the cuts of each dimension, and write passes and whether the box changes."""
    for axis in range(net.ranks[net.tensors[op, x]]):
        inside[net.dims[op, x, axis]] = True
    for d in range(DIMS):
        block[d] = net.extents[op, d]
        tile[d] = block[d]
    last = -1  # the last loop that changes the box
    for i in range(2 + level):
        d = loops.streams[i] if i < 2 else loops.order[i - 2]
        if d >= 0 and inside[d]:
            cut = loops.blocks[d] if i < 2 else loops.tile[d]
            within = net.extents[op, d] if i < 2 else loops.blocks[d]
            if cut < within:
                last = i
    for i in range(2 + level):
        d = loops.streams[i] if i < 2 else loops.order[i - 2]
        if d >= 0 and (inside[d] or i < last):
            if i < 2:
                block[d] = loops.blocks[d]
                tile[d] = min(tile[d], block[d])
            else:
                tile[d] = min(loops.tile[d], block[d])
    passes = 1
    for d in range(DIMS):
        if not inside[d]:
            passes *= pieces(net.extents[op, d], block[d], tile[d])
    out[1], out[2] = passes, last >= 0


@compiled(runtime=False)
def _granules(size: int, granule: int) -> int:
    return (size + granule - 1) // granule * granule


@compiled(runtime=False)
def _runs(extent: int, block: int, tile: int, size: int, granule: int) -> int:
    """Return the bytes of one run for each piece of a dimension, `size` bytes for each of its elements."""
    rest, blocks = extent % block, extent // block
    total = (blocks * (block // tile) + rest // tile) * _granules(tile * size, granule)
    return total + blocks * _granules(block % tile * size, granule) + _granules(rest % tile * size, granule)


@compiled(runtime=False)
def _span(net: Arrays, op: int, x: int, axis: int, start: int, length: int) -> int:
    """Return how many elements of an axis a piece touches; with holes between windows, only those in windows."""
    stride, window, pad = net.strides[op, x, axis], net.windows[op, x, axis], net.pads[op, x, axis]
    if stride > window:
        return length * window
    full = net.sizes[net.tensors[op, x], axis]
    return min(full, stride * (start + length - 1) + window - pad) - max(0, stride * start - pad)


@compiled(runtime=False)
def _window(net: Arrays, op: int, x: int, axis: int, extent: int, block: int, tile: int) -> tuple[int, int]:
    """Return the elements of an axis that all pieces touch together, each counted as often, and the most of one."""
    touched, longest, start = 0, 0, 0
    while start < extent:
        end = min(extent, start - start % block + block)
        length = min(tile, end - start)
        span = _span(net, op, x, axis, start, length)
        touched, longest = touched + span, max(longest, span)
        start += length
    return touched, longest


@compiled(runtime=False)
def _window_runs(
    net: Arrays, op: int, x: int, axis: int, extent: int, block: int, tile: int, size: int, granule: int
) -> int:
    total, start = 0, 0
    window, holes = net.windows[op, x, axis], net.strides[op, x, axis] > net.windows[op, x, axis]
    while start < extent:
        end = min(extent, start - start % block + block)
        length = min(tile, end - start)
        if holes:
            total += length * _granules(window * size, granule)
        else:
            total += _granules(_span(net, op, x, axis, start, length) * size, granule)
        start += length
    return total


@compiled(runtime=False)
def whole(net: Arrays, tensor: int, granule: int) -> int:
    """Return the bytes of a whole tensor."""
    elements = 1
    for axis in range(AXES):
        elements *= net.sizes[tensor, axis]
    return _granules(elements * net.bytes[tensor], granule)
