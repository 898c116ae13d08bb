"""The hardware model: how many cycles one kernel takes, for a tile and flags of code generation.

A kernel walks over tiles: while one is computed, the next is fetched and the last written. The compiler's own
analytical model is the same walk on the machine of the data sheet (`Machine.on_paper`), without second-order effects;
it chooses the default tile. Compiled with numba; all numbers are floats.

A kernel is a row of `KERNEL_WIDTH` numbers. It has up to three places of work: 0 the loop over the result (for a
reduction, over its input), 1 and 2 what is computed in front of the left and right operand of a matrix product.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled

# Columns of a machine, in the order of `Machine`.
HERTZ, MEMORY, MATRIX, VECTOR, SCRATCHPAD, LAUNCH, LATENCY, STEP = range(8)
STREAM, STAGE, CODE, LOSS, CHUNK, SPILL, LOOP = range(8, 15)
SIDE, START, TURN, FETCH, DRAIN, SUM = range(15, 21)  # of products only

# Columns of a kernel. From READ: bytes that one pass over each place reads from memory; from WORK: vector operations of
# one such pass; WRITTEN: bytes of the result; OPERANDS: arrays read; OPERATIONS: fused; GROUPS to TAPS: the matrix
# product in it, zeros if none; SUMS: bytes of the heavy operation's own result in 32 bits; OUTER to WIDTH: extents of
# the loop; SIZE: bytes of an element of the kernel's result.
READ, WORK, WRITTEN, OPERANDS, OPERATIONS = 0, 3, 6, 7, 8
GROUPS, ROWS, COLUMNS, DEPTH, TAPS, SUMS, OUTER, HEIGHT, WIDTH, SIZE = range(9, 19)
KERNEL_WIDTH = 19

# Columns of the flags; the default of each. ORDER 1 keeps the left operand's tile and walks the right one, 0 the
# reverse; the compiler chooses it with the tile.
BUFFERS, UNROLL, PREFETCH, ORDER, PARTIALS, VECTORS = range(6)
DEFAULT_FLAGS = (2.0, 4.0, 0.0, 0.0, 1.0, 2.0)

_PRIME = 200.0  # cycles to set up one more window

REGISTERS = 32.0
"""Values that a kernel's body keeps at hand; beyond, they go through the scratchpad."""

_DEEP = 32.0
"""Taps lie side by side in the depth of the matrix unit where each is at least so deep; else they take turns."""

_SMALLEST, _GROWTH = 2.0**17, 2.0  # elements of the tiles of a loop that the compiler tries


@compiled(runtime=False)
def extent(kernel: NDArray, axis: int) -> float:
    """Return what a tile cuts along an axis: outer, rows, columns of a loop; rows, columns, depth of a product.

    Narrow groups of a product share the matrix unit, and it works on whole 128 x 128 blocks.
    """
    if kernel[GROUPS] == 0:
        return kernel[OUTER + axis]
    if axis == 0:
        return max(1.0, kernel[ROWS])
    packed = min(kernel[GROUPS], max(1.0, math.floor(128 / max(1.0, kernel[COLUMNS]))))
    return _blocks(kernel, axis, packed, 128.0) * 128


@compiled(runtime=False)
def _blocks(kernel: NDArray, axis: int, packed: float, side: float) -> float:
    """Return the blocks of a matrix unit of some side that the columns or the depth of a product take."""
    size, taps = max(1.0, kernel[ROWS + axis] * packed), kernel[TAPS] if axis == 2 else 1.0
    if kernel[GROUPS] > 1 or size < _DEEP:
        return math.ceil(size / side) * taps
    return math.ceil(size * taps / side)


@compiled(runtime=False)
def unit(kernel: NDArray, axis: int) -> float:
    """Return the smallest piece that an axis is cut into."""
    if axis == 2:
        return 128.0
    if axis == 1:
        return 8.0 if kernel[GROUPS] == 0 else 128.0
    return 1.0 if kernel[GROUPS] == 0 else 8.0


@compiled(runtime=False)
def legal_size(kernel: NDArray, axis: int, wanted: float) -> float:
    """Return the largest tile size up to `wanted`: the whole extent, or a power of two of units, one at least."""
    whole, smallest = extent(kernel, axis), unit(kernel, axis)
    if wanted >= whole or whole <= smallest:
        return whole
    return smallest * 2.0 ** math.floor(math.log2(max(1.0, wanted / smallest)))


def legal_sizes(kernel: NDArray, axis: int) -> NDArray[np.float64]:
    """Return the sizes that an axis can be cut to, ascending; the last is the whole extent."""
    whole, smallest = extent(kernel, axis), unit(kernel, axis)
    powers = smallest * 2.0 ** np.arange(max(0, math.ceil(math.log2(max(1.0, whole / smallest)))))
    return np.append(powers[powers < whole], whole)


@compiled(runtime=False)
def kernel_cycles(machine: NDArray, kernel: NDArray, tile: NDArray, flags: NDArray) -> float:
    """Return the cycles of a `(KERNEL_WIDTH,)` kernel with a `(3,)` tile and `(6,)` flags; inf if windows overflow."""
    body = 1.0
    if machine[SPILL] > 0:
        live = (kernel[OPERANDS] + kernel[OPERATIONS] / 4) * math.sqrt(flags[UNROLL] / 4 * flags[VECTORS] / 2)
        body += machine[SPILL] * max(0.0, live - REGISTERS)
        body *= 1 + machine[LOOP] * (4 / flags[UNROLL] - 1)
    if kernel[GROUPS] > 0:
        cycles = _product(machine, kernel, tile, flags, body)
    else:
        cycles = _loop(machine, kernel, tile, flags, body)
    primed = max(0.0, flags[BUFFERS] - 2) + flags[PREFETCH]  # windows to set up beyond the usual two an operand
    launch = machine[START] if kernel[GROUPS] > 0 else machine[LAUNCH]
    start = launch + _PRIME * primed * (kernel[OPERANDS] + 1)
    return start + machine[CODE] * kernel[OPERATIONS] * flags[UNROLL] / 4 + cycles


@compiled(runtime=False)
def _pipelined(machine: NDArray, flags: NDArray, memory: float, matrix: float, vector: float, steps: float) -> float:
    """Return the cycles of units: those that compute overlap at any time, memory and they only in other steps."""
    if flags[BUFFERS] < 2:
        return memory + matrix + vector
    computed = max(matrix, vector) + machine[LOSS] * min(matrix, vector)
    exposed = 1 / steps / (1 + flags[PREFETCH])
    hidden = 1 - machine[LOSS] * 2 / flags[BUFFERS]
    return max(memory, computed) + min(memory, computed) * (1 - hidden * (1 - exposed))


@compiled(runtime=False)
def _streamed(machine: NDArray, moved: float, steps: float) -> float:
    """Return the cycles to move bytes; each step but the first waits for the answer of memory anew."""
    return moved / (machine[MEMORY] * machine[STREAM]) + machine[LATENCY] * (steps - 1)


@compiled(runtime=False)
def _vectors(machine: NDArray, flags: NDArray, width: float) -> float:
    """Return the factor on vector work when several registers are handled at once along a tile's width."""
    several = flags[VECTORS]
    if several == 2 and width >= 256:
        return 1.0
    return 1 + machine[LOOP] * (2 / several - 1 if width >= 128 * several else several - 1)


@compiled(runtime=False)
def _loop(machine: NDArray, kernel: NDArray, tile: NDArray, flags: NDArray, body: float) -> float:
    """Return the cycles of a loop over tiles, the last of which may be smaller; short rows make memory slow."""
    steps = 1.0
    for axis in range(3):
        if tile[axis] < kernel[OUTER + axis]:
            steps *= math.ceil(kernel[OUTER + axis] / tile[axis])
    row = tile[2] * kernel[SIZE]
    if tile[2] >= kernel[WIDTH]:
        row *= tile[1] if tile[1] < kernel[HEIGHT] else tile[1] * tile[0]
    arrays, staged = kernel[READ] + kernel[WRITTEN], _staged(kernel)
    if (flags[BUFFERS] + flags[PREFETCH]) * (arrays + staged) / steps > machine[SCRATCHPAD]:
        return math.inf
    moved = arrays + machine[STAGE] * staged
    memory = _streamed(machine, moved * (1 + machine[CHUNK] / max(1.0, row)), steps)
    work = kernel[WORK] * body * _vectors(machine, flags, tile[2]) / machine[VECTOR]
    return _pipelined(machine, flags, memory, 0.0, work, steps) + (steps - 1) * machine[STEP]


@compiled(runtime=False)
def _staged(kernel: NDArray) -> float:
    """Return the bytes of intermediate values: those of a reduction, or of a result narrower than they are."""
    if kernel[GROUPS] > 0:
        return kernel[SUMS] if kernel[SIZE] < 4 else 0.0
    values = 4 * kernel[OUTER] * kernel[HEIGHT] * kernel[WIDTH]
    return values if kernel[SIZE] < 4 or kernel[SUMS] < values else 0.0


@compiled(runtime=False)
def _product(machine: NDArray, kernel: NDArray, tile: NDArray, flags: NDArray, body: float) -> float:
    """Return the cycles of a matrix product; what does not stay is read again for each tile of the other operand."""
    packed = min(kernel[GROUPS], max(1.0, math.floor(128 / max(1.0, kernel[COLUMNS]))))
    batches, wide, deep = math.ceil(kernel[GROUPS] / packed), extent(kernel, 1), extent(kernel, 2)
    down, across = max(1.0, math.ceil(kernel[ROWS] / tile[0])), math.ceil(wide / tile[1])
    cuts = math.ceil(deep / tile[2])
    share = 1 / (batches * down * across)
    windows = kernel[READ + 1] / (batches * down * cuts) + kernel[READ + 2] / (batches * across * cuts)
    windows += (kernel[READ] + kernel[WRITTEN]) * share
    sums = (1 + flags[PARTIALS]) * kernel[SUMS] * share
    if (flags[BUFFERS] + flags[PREFETCH]) * windows + sums > machine[SCRATCHPAD]:
        return math.inf
    again_left = across if flags[ORDER] < 1 else 1.0
    again_right = 1.0 if flags[ORDER] < 1 else down
    memory = kernel[READ] + kernel[WRITTEN] + kernel[READ + 1] * again_left + kernel[READ + 2] * again_right
    work = kernel[WORK] + kernel[WORK + 1] * again_left + kernel[WORK + 2] * again_right
    work += (cuts - 1 + flags[PARTIALS] - 1) * kernel[SUMS] / 4
    work *= body * _vectors(machine, flags, tile[1]) / machine[VECTOR]
    memory += machine[STAGE] * _staged(kernel)
    side = machine[SIDE]
    loading = down * side * side / 512 / flags[PARTIALS]  # of weights takes as long as that many rows
    pushed = max(math.ceil(kernel[ROWS] / 8) * 8, loading)
    blocks = batches * _blocks(kernel, 1, packed, side) * _blocks(kernel, 2, packed, side)
    dense = 2 * pushed * blocks * side * side / machine[MATRIX]
    dense += machine[SUM] * (kernel[TAPS] - 1) * kernel[SUMS] / 4 / machine[VECTOR]
    steps = batches * down * across * cuts
    if down * across * cuts == 1:  # several groups in one step
        steps = max(1.0, math.ceil(batches * (flags[BUFFERS] * windows + sums) / machine[SCRATCHPAD]))
    fetched = (kernel[READ + 1] > 0) + (kernel[READ + 2] > 0)
    streamed = _streamed(machine, memory, steps if fetched else 1.0)
    start = machine[FETCH] * fetched + machine[DRAIN] * (kernel[WRITTEN] > 0) + steps * machine[TURN]
    return start + _pipelined(machine, flags, streamed, dense, work, steps)


@compiled(runtime=False)
def few_tiles(kernel: NDArray, tiles: NDArray) -> None:
    """Write the `(4, 3)` tiles that the compiler itself chooses among: from small to large ones."""
    for choice in range(4):
        tile = tiles[choice]
        if kernel[GROUPS] > 0:
            tile[0] = legal_size(kernel, 0, 1024.0 if choice % 2 == 0 else 4096.0)
            tile[1] = legal_size(kernel, 1, 256.0 if choice < 2 else 1024.0)
            tile[2] = extent(kernel, 2)
        else:
            wanted = _SMALLEST * _GROWTH**choice
            tile[2] = legal_size(kernel, 2, wanted)
            tile[1] = legal_size(kernel, 1, wanted / tile[2])
            tile[0] = legal_size(kernel, 0, wanted / tile[2] / tile[1])


@compiled(runtime=False)
def settle(paper: NDArray, kernel: NDArray, tiles: NDArray, tile: NDArray, flags: NDArray) -> None:
    """Write the tile, and the order, that the analytical model likes best among a few; the other flags stay.

    What does not fit has to be squeezed.

    Args:
      paper: the machine on paper.
      kernel: `(KERNEL_WIDTH,)`.
      tiles: `(4, 3)` from `few_tiles`.
      tile: `(3,)`, written.
      flags: `(6,)`, its order written.
    """
    chosen = _for_product(paper, kernel, tiles, flags) if kernel[GROUPS] > 0 else _for_loop(paper, kernel)
    for axis in range(3):
        tile[axis] = tiles[chosen, axis]


@compiled(runtime=False)
def _for_loop(paper: NDArray, kernel: NDArray) -> int:
    """Return the largest tile whose windows surely fit: each further step waits for memory."""
    elements = kernel[OUTER] * kernel[HEIGHT] * kernel[WIDTH]
    steps = 2 * (kernel[READ] + kernel[WRITTEN] + _staged(kernel)) / paper[SCRATCHPAD]
    choice, size = 3, _SMALLEST * _GROWTH**3
    while choice > 0 and size * steps > elements:
        size /= _GROWTH
        choice -= 1
    return choice


@compiled(runtime=False)
def _for_product(paper: NDArray, kernel: NDArray, tiles: NDArray, flags: NDArray) -> int:
    """Return which tile is best; what is read again decides which operand stays."""
    best, chosen, order = math.inf, 0, 0.0
    for choice in range(4):
        down, across = kernel[ROWS] / tiles[choice, 0], kernel[COLUMNS] / tiles[choice, 1]
        flags[ORDER] = 1.0 if kernel[READ + 1] * (across - 1) > kernel[READ + 2] * (down - 1) else 0.0
        cycles = kernel_cycles(paper, kernel, tiles[choice], flags)
        if cycles < best:
            best, chosen, order = cycles, choice, flags[ORDER]
    flags[ORDER] = order
    return chosen


@compiled(runtime=False)
def squeeze(machine: NDArray, kernel: NDArray, tile: NDArray, flags: NDArray) -> float:
    """Cut a tile that does not fit in halves until it does, the last extent first, and return the cycles.

    Where the smallest does not fit either (a small result of large operands), nothing is pipelined.
    """
    for axis in (2, 1, 0):
        while tile[axis] > unit(kernel, axis):
            tile[axis] = legal_size(kernel, axis, tile[axis] / 2)
            cycles = kernel_cycles(machine, kernel, tile, flags)
            if cycles < math.inf:
                return cycles
    moved, work = kernel[WRITTEN], 0.0
    for place in range(3):
        moved += kernel[READ + place]
        work += kernel[WORK + place]
    dense = 2 * kernel[GROUPS] * kernel[ROWS] * kernel[COLUMNS] * kernel[DEPTH] * kernel[TAPS] / machine[MATRIX]
    return machine[LAUNCH] + moved / machine[MEMORY] + work / machine[VECTOR] + dense
