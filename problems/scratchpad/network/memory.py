"""The bytes that operands move between DRAM and the scratchpad, in closed form, and the scratchpad that they take.

The loops outside an operand's buffer are those over blocks of its group, and the first `level` tile loops of its
operator. They cut each dimension into pieces: by the block, then by the tile. A box of the operand, one piece of each
axis, is moved when it changes. Loops outside the last one that changes it, over dimensions that the operand does not
have, move everything again. A box is moved in runs of consecutive elements, each in whole granules.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load

from .groups import INSIDE, NORMAL, RESIDENT, SLICE
from .space import AXES, DIMS, STATE, Arrays

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

    A box that lies across banks takes memory in all of them.

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


@compiled(runtime=False, inline=False)
def lay(config: NDArray, at: int) -> None:
    """Set the axis of each operand that lies across the banks, and whether the candidate lays it otherwise."""
    state: Any = load(at, STATE)
    net, columns, plan = state.net, state.columns, state.plan
    if state.limits[2] == 0:
        return
    for t in range(len(net.ranks)):
        plan.bank[t] = config[columns.bank[t]] if columns.bank[t] >= 0 else -1
    for op in range(len(net.moves)):
        product = _multiplies(op, at)
        working = -1 if product else _working(op, at)
        for x in range(net.reads[op] + 1):
            read, chosen = x < net.reads[op], _chosen(op, x, at)
            plan.across[op, x] = -1
            for a in range(net.ranks[net.tensors[op, x]]):
                d = net.dims[op, x, a]
                suits = net.tiled[op, d] and net.reduced[op, d] == read if product else d == working
                if suits and (plan.across[op, x] < 0 or a == chosen):
                    plan.across[op, x] = a
            plan.clash[op, x] = not plan.gone[op] and chosen >= 0 and plan.across[op, x] != chosen


@compiled(runtime=False, inline=False)
def _multiplies(op: int, at: int) -> bool:
    """True if an operator sums over a dimension that may be cut: a product or a convolution."""
    state: Any = load(at, STATE)
    net = state.net
    found = False
    for d in range(DIMS):
        found = found or (net.reduced[op, d] and net.tiled[op, d])
    return found


@compiled(runtime=False, inline=False)
def _working(op: int, at: int) -> int:
    """Return the dimension across which an operator works that is no product: its result's, or else an operand's."""
    state: Any = load(at, STATE)
    net = state.net
    for back in range(net.reads[op] + 1):
        x = net.reads[op] - back
        axis = _chosen(op, x, at)
        if axis >= 0 and net.tiled[op, net.dims[op, x, axis]] and not net.reduced[op, net.dims[op, x, axis]]:
            return net.dims[op, x, axis]
    for d in range(DIMS):
        if net.tiled[op, d] and not net.reduced[op, d]:
            return d
    return -1


@compiled(runtime=False, inline=False)
def _chosen(op: int, x: int, at: int) -> int:
    """Return the axis of an operand that the candidate lays across the banks; -1 if it never waits."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    tensor = net.tensors[op, x]
    bank = plan.bank[plan.root[tensor]]
    for a in range(net.ranks[tensor] if bank >= 0 else 0):
        if plan.axis[tensor, a] == bank:
            return a
    return -1


@compiled(runtime=False, inline=False)
def waiting(tensor: int, at: int) -> int:
    """Return the bytes that a whole tensor takes in the scratchpad."""
    state: Any = load(at, STATE)
    net, plan, limits = state.net, state.plan, state.limits
    size = net.bytes[tensor]
    for a in range(AXES):
        size *= rounded(net.sizes[tensor, a], limits[2]) if plan.bank[tensor] == a else net.sizes[tensor, a]
    return rounded(size, limits[1])


@compiled(runtime=False, inline=False)
def measure(op: int, at: int) -> None:
    """Set what the operands of an operator move."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    for x in range(net.reads[op] + 1):
        traffic(at, op, x, net.bytes[net.tensors[op, x]], plan.moved[op, x])


@compiled(runtime=False, inline=False)
def sums(op: int, at: int) -> bool:
    """True if an operator adds up; its result then takes 4 bytes for each element until it is complete."""
    state: Any = load(at, STATE)
    net = state.net
    adds = False
    for d in range(DIMS):
        adds = adds or net.reduced[op, d]
    return adds


@compiled(runtime=False, inline=False)
def buffer(op: int, x: int, at: int) -> int:
    """Return the bytes of an operand's buffer: two boxes if it changes, so that one is moved while one is used."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    result, served = x == net.reads[op], plan.served[op, x]
    adds = result and sums(op, at)
    if served in (INSIDE, SLICE) or (served == RESIDENT and not adds):
        return 0
    size = 4 if adds else net.bytes[net.tensors[op, x]]
    return plan.moved[op, x, 3] * size * (1 + (plan.moved[op, x, 2] and served == NORMAL))


@compiled(runtime=False, inline=False)
def slice_size(op: int, at: int) -> int:
    """Return the bytes of the slice of a result that a group holds."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    x = net.reads[op]
    tensor = net.tensors[op, x]
    size = 4 if sums(op, at) else net.bytes[tensor]
    for a in range(net.ranks[tensor]):
        length = plan.blocks[op, net.dims[op, x, a]]
        size *= rounded(length, state.limits[2]) if plan.bank[plan.root[tensor]] == plan.axis[tensor, a] else length
    return size


@compiled(runtime=False, inline=False)
def needed(head: int, end: int, at: int) -> int:
    """Return the bytes of scratchpad that a group needs at most at a time."""
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    staying, pinned, most = 0, 0, 0
    for t in range(len(net.ranks)):
        if plan.resident[t] and plan.first[t] < end and plan.last[t] >= head:
            staying += waiting(t, at)
    for op in range(head, end):
        if plan.gone[op]:
            continue
        moving = 0
        for x in range(net.reads[op] + 1):
            size = buffer(op, x, at)
            if plan.moved[op, x, 2]:
                moving += size
            else:
                pinned += size
        for other in range(head, op + 1):
            held = not plan.gone[other] and plan.served[other, net.reads[other]] == SLICE
            if held and _last_inside(other, end, at) >= op:
                moving += slice_size(other, at)
        most = max(most, moving)
    return staying + pinned + most


@compiled(runtime=False, inline=False)
def _last_inside(op: int, end: int, at: int) -> int:
    state: Any = load(at, STATE)
    net, plan = state.net, state.plan
    root = plan.root[net.tensors[op, net.reads[op]]]
    return min(plan.last[root], end - 1)
