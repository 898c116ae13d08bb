"""The bytes that one operand moves between DRAM and the scratchpad, in closed form.

The loops outside an operand's buffer are those over blocks of its group, and the first `level` tile loops of its
operator. They cut each dimension into pieces: by the block, then by the tile. A box of the operand, one piece of each
axis, is moved when it changes. Loops outside the last one that changes it, over dimensions that the operand does not
have, move everything again. A box is moved in runs of consecutive elements, each in whole granules.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load

from .arrays import AXES, DIMS, Arrays
from .state import STATE

compiled = compiled_for(__file__)


@compiled(runtime=False)
def pieces(extent: int, block: int, tile: int) -> int:
    """Return how many pieces a dimension is cut into."""
    if tile == extent:  # mostly; a division takes longer
        return 1
    rest = extent % block
    return (extent // block) * ((block + tile - 1) // tile) + (rest + tile - 1) // tile


@compiled(runtime=False, inline=False)
def traffic(at: int, op: int, x: int, size: int, out: NDArray) -> None:
    """Write how an operand moves: bytes of one pass, passes, whether its box changes, elements of the largest box.

    A box that lies across banks takes room in all of them.

    Args:
      at: the handle of the state, whose plan says how the operator is tiled.
      op, x: the operator, and the operand's place.
      size: bytes of an element.
      out: `(4,)` int64.
    """
    state: Any = load(at, STATE)
    net, plan, granule = state.net, state.plan, state.limits[1]
    block, tile, fast = plan.cuts[0], plan.cuts[1], plan.fast[net.tensors[op, x]]
    _cut(at, op, x, out)
    tensor = net.tensors[op, x]
    run, total, box = 1, -1, 1
    for place in range(net.ranks[tensor]):
        axis = fast[place]
        d, stride, window = net.dims[op, x, axis], net.strides[op, x, axis], net.windows[op, x, axis]
        extent, full = net.extents[op, d], net.sizes[tensor, axis]
        plain = stride == 1 and window == 1 and net.pads[op, x, axis] == 0
        touched, longest = full, min(block[d], tile[d])
        if not plain:
            pad, cut = net.pads[op, x, axis], plan.cuts[3, :3]
            _window(stride, window, pad, full, extent, block[d], tile[d], run * size, granule, cut)
            touched, longest = cut[0], cut[1]
        box *= rounded(longest, state.limits[2]) if axis == plan.across[op, x] else longest
        if total >= 0:
            total *= touched
        elif longest == full and pieces(extent, block[d], tile[d]) == 1 and stride <= window:
            run *= full
        elif plain:
            total = _runs(extent, block[d], tile[d], run * size, granule)
        else:
            total = plan.cuts[3, 2]
    if total < 0:
        total = rounded(run * size, granule)
    out[0], out[3] = total, box


@compiled(runtime=False, inline=False)
def _cut(at: int, op: int, x: int, out: NDArray) -> None:
    """Set the cuts of each dimension, and write passes and whether the box changes."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    block, tile, inside, level = plan.cuts[0], plan.cuts[1], plan.cuts[2], plan.level[op, x]
    for d in range(DIMS):
        block[d], tile[d], inside[d] = net.extents[op, d], net.extents[op, d], 0
    for axis in range(net.ranks[net.tensors[op, x]]):
        inside[net.dims[op, x, axis]] = 1
    last = -1  # the last loop that changes the box
    for i in range(2 + level):
        d = plan.streams[op, i] if i < 2 else plan.order[op, i - 2]
        if d >= 0 and inside[d]:
            cut = plan.blocks[op, d] if i < 2 else plan.tile[op, d]
            within = net.extents[op, d] if i < 2 else plan.blocks[op, d]
            if cut < within:
                last = i
    for i in range(2 + level):
        d = plan.streams[op, i] if i < 2 else plan.order[op, i - 2]
        if d >= 0 and (inside[d] or i < last):
            if i < 2:
                block[d] = plan.blocks[op, d]
                tile[d] = min(tile[d], block[d])
            else:
                tile[d] = min(plan.tile[op, d], block[d])
    passes = 1
    for d in range(DIMS):
        if not inside[d]:
            passes *= pieces(net.extents[op, d], block[d], tile[d])
    out[1], out[2] = passes, last >= 0


@compiled(runtime=False)
def rounded(size: int, granule: int) -> int:
    """Return a size in whole granules."""
    return (size + granule - 1) // granule * granule


@compiled(runtime=False)
def _runs(extent: int, block: int, tile: int, size: int, granule: int) -> int:
    """Return the bytes of one run for each piece of a dimension, `size` bytes for each of its elements."""
    if tile == extent:
        return rounded(tile * size, granule)
    rest, blocks = extent % block, extent // block
    total = (blocks * (block // tile) + rest // tile) * rounded(tile * size, granule)
    return total + blocks * rounded(block % tile * size, granule) + rounded(rest % tile * size, granule)


@compiled(runtime=False, inline=False)
def _span(stride: int, window: int, pad: int, full: int, start: int, length: int) -> int:
    """Return how many elements of an axis a piece touches; with holes between windows, only those in windows."""
    if stride > window:
        return length * window
    return min(full, stride * (start + length - 1) + window - pad) - max(0, stride * start - pad)


@compiled(runtime=False, inline=False)
def _window(
    stride: int,
    window: int,
    pad: int,
    full: int,
    extent: int,
    block: int,
    tile: int,
    size: int,
    granule: int,
    out: NDArray,
) -> None:
    """Write what the pieces of an axis with windows touch: all together, the most of one, the bytes of their runs."""
    out[:] = 0
    start = 0
    while start < extent:
        end = min(extent, start - start % block + block)
        length = min(tile, end - start)
        span = _span(stride, window, pad, full, start, length)
        runs = length if stride > window else 1  # with holes, each window is a run
        out[0], out[1] = out[0] + span, max(out[1], span)
        out[2] += runs * rounded(span // runs * size, granule)
        start += length


@compiled(runtime=False)
def whole(net: Arrays, tensor: int, granule: int) -> int:
    """Return the bytes of a whole tensor."""
    elements = 1
    for axis in range(AXES):
        elements *= net.sizes[tensor, axis]
    return rounded(elements * net.bytes[tensor], granule)
