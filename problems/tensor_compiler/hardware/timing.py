"""The hardware model: how many cycles one kernel takes, for a tile and flags of code generation.

A kernel walks over tiles: while one tile is computed, the next is fetched and the previous one is written. The
compiler's own analytical model (`Machine.analytical_model`) is the same walk at the peak rates of the data sheet,
without second-order effects; by it the compiler chooses a tile among a few. A kernel is a row with the columns of
`Kernel`, a machine is `Machine.array()`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .kernel_row import DEEP, PLACES, Flag, Kernel, LoopAxis, ProductAxis
from .machine import Rate

compiled = compiled_for(__file__)


_PRIME = 200.0  # cycles to set up one more window

REGISTERS = 32.0
"""Values that a kernel's body keeps in registers; further ones go through the scratchpad."""

_SMALLEST, _GROWTH = 2.0**17, 2.0  # elements of the tiles of a loop that the compiler tries


@compiled(runtime=False)
def kernel_cycles(machine: NDArray, kernel: NDArray, tile: NDArray, flags: NDArray) -> float:
    """Return the cycles of a `(KERNEL_WIDTH,)` kernel with a `(3,)` tile and `(6,)` flags; inf if windows overflow."""
    body = 1.0
    if machine[Rate.SPILL] > 0:
        copies = math.sqrt(flags[Flag.UNROLL] / 4 * flags[Flag.VECTORS] / 2)
        live = (kernel[Kernel.OPERANDS] + kernel[Kernel.OPERATIONS] / 4) * copies
        body += machine[Rate.SPILL] * max(0.0, live - REGISTERS)
        body *= 1 + machine[Rate.LOOP] * (4 / flags[Flag.UNROLL] - 1)
    if kernel[Kernel.GROUPS] > 0:
        cycles = _product(machine, kernel, tile, flags, body)
    else:
        cycles = _loop(machine, kernel, tile, flags, body)
    primed = max(0.0, flags[Flag.BUFFERS] - 2) + flags[Flag.PREFETCH]  # windows beyond the usual two for each operand
    launch = machine[Rate.START] if kernel[Kernel.GROUPS] > 0 else machine[Rate.LAUNCH]
    start = launch + _PRIME * primed * (kernel[Kernel.OPERANDS] + 1)
    return start + machine[Rate.CODE] * kernel[Kernel.OPERATIONS] * flags[Flag.UNROLL] / 4 + cycles


@compiled(runtime=False)
def _pipelined(machine: NDArray, flags: NDArray, memory: float, matrix: float, vector: float, steps: float) -> float:
    """Return the cycles of all units: the two that compute always overlap; memory overlaps them in other steps only."""
    if flags[Flag.BUFFERS] < 2:
        return memory + matrix + vector
    computed = max(matrix, vector) + machine[Rate.LOSS] * min(matrix, vector)
    exposed = 1 / steps / (1 + flags[Flag.PREFETCH])
    hidden = 1 - machine[Rate.LOSS] * 2 / flags[Flag.BUFFERS]
    return max(memory, computed) + min(memory, computed) * (1 - hidden * (1 - exposed))


@compiled(runtime=False)
def _streamed(machine: NDArray, moved: float, steps: float) -> float:
    """Return the cycles to move bytes; each step but the first waits for the latency of memory."""
    return moved / (machine[Rate.MEMORY] * machine[Rate.STREAM]) + machine[Rate.LATENCY] * (steps - 1)


@compiled(runtime=False)
def _vectors(machine: NDArray, flags: NDArray, width: float) -> float:
    """Return the factor on vector work when several registers are handled at once along a tile's width."""
    several = flags[Flag.VECTORS]
    if several == 2 and width >= 256:
        return 1.0
    return 1 + machine[Rate.LOOP] * (2 / several - 1 if width >= 128 * several else several - 1)


@compiled(runtime=False)
def _loop(machine: NDArray, kernel: NDArray, tile: NDArray, flags: NDArray, body: float) -> float:
    """Return the cycles of a loop over tiles, the last of which may be smaller; short rows slow the memory down."""
    steps = 1.0
    for axis in range(3):
        if tile[axis] < kernel[Kernel.OUTER + axis]:
            steps *= math.ceil(kernel[Kernel.OUTER + axis] / tile[axis])
    width, height = tile[LoopAxis.WIDTH], tile[LoopAxis.HEIGHT]
    row = width * kernel[Kernel.SIZE]
    if width >= kernel[Kernel.WIDTH]:
        row *= height if height < kernel[Kernel.HEIGHT] else height * tile[LoopAxis.OUTER]
    arrays, staged = kernel[Kernel.READ] + kernel[Kernel.WRITTEN], staged_bytes(kernel)
    if (flags[Flag.BUFFERS] + flags[Flag.PREFETCH]) * (arrays + staged) / steps > machine[Rate.SCRATCHPAD]:
        return math.inf
    moved = arrays + machine[Rate.STAGE] * staged
    memory = _streamed(machine, moved * (1 + machine[Rate.CHUNK] / max(1.0, row)), steps)
    work = kernel[Kernel.WORK] * body * _vectors(machine, flags, width) / machine[Rate.VECTOR]
    return _pipelined(machine, flags, memory, 0.0, work, steps) + (steps - 1) * machine[Rate.STEP]


@compiled(runtime=False)
def staged_bytes(kernel: NDArray) -> float:
    """Return the bytes of intermediate values: those of a reduction, or of a result narrower than they are."""
    if kernel[Kernel.GROUPS] > 0:
        return kernel[Kernel.SUMS] if kernel[Kernel.SIZE] < 4 else 0.0
    values = 4 * kernel[Kernel.OUTER] * kernel[Kernel.HEIGHT] * kernel[Kernel.WIDTH]
    return values if kernel[Kernel.SIZE] < 4 or kernel[Kernel.SUMS] < values else 0.0


@compiled(runtime=False)
def _product(machine: NDArray, kernel: NDArray, tile: NDArray, flags: NDArray, body: float) -> float:
    """Return the cycles of a matrix product; the operand that does not stay is read once for each tile of the other."""
    packed = min(kernel[Kernel.GROUPS], max(1.0, math.floor(128 / max(1.0, kernel[Kernel.COLUMNS]))))
    batches = math.ceil(kernel[Kernel.GROUPS] / packed)
    down = max(1.0, math.ceil(kernel[Kernel.ROWS] / tile[ProductAxis.ROWS]))
    across = math.ceil(extent(kernel, ProductAxis.COLUMNS) / tile[ProductAxis.COLUMNS])
    cuts = math.ceil(extent(kernel, ProductAxis.DEPTH) / tile[ProductAxis.DEPTH])
    left, right = kernel[Kernel.READ_LEFT], kernel[Kernel.READ_RIGHT]
    share = 1 / (batches * down * across)
    windows = left / (batches * down * cuts) + right / (batches * across * cuts)
    windows += (kernel[Kernel.READ] + kernel[Kernel.WRITTEN]) * share
    sums = (1 + flags[Flag.PARTIALS]) * kernel[Kernel.SUMS] * share
    if (flags[Flag.BUFFERS] + flags[Flag.PREFETCH]) * windows + sums > machine[Rate.SCRATCHPAD]:
        return math.inf
    left_passes = across if flags[Flag.ORDER] < 1 else 1.0
    right_passes = 1.0 if flags[Flag.ORDER] < 1 else down
    memory = kernel[Kernel.READ] + kernel[Kernel.WRITTEN] + left * left_passes + right * right_passes
    work = kernel[Kernel.WORK] + kernel[Kernel.WORK_LEFT] * left_passes + kernel[Kernel.WORK_RIGHT] * right_passes
    work += (cuts - 1 + flags[Flag.PARTIALS] - 1) * kernel[Kernel.SUMS] / 4
    work *= body * _vectors(machine, flags, tile[ProductAxis.COLUMNS]) / machine[Rate.VECTOR]
    memory += machine[Rate.STAGE] * staged_bytes(kernel)
    dense = _matrix_cycles(machine, kernel, flags, batches, packed, down)
    steps = batches * down * across * cuts
    if down * across * cuts == 1:  # several groups in one step
        steps = max(1.0, math.ceil(batches * (flags[Flag.BUFFERS] * windows + sums) / machine[Rate.SCRATCHPAD]))
    fetched = (left > 0) + (right > 0)
    streamed = _streamed(machine, memory, steps if fetched else 1.0)
    start = machine[Rate.FETCH] * fetched + machine[Rate.DRAIN] * (kernel[Kernel.WRITTEN] > 0)
    start += steps * machine[Rate.TURN]
    return start + _pipelined(machine, flags, streamed, dense, work, steps)


@compiled(runtime=False)
def _matrix_cycles(
    machine: NDArray, kernel: NDArray, flags: NDArray, batches: float, packed: float, down: float
) -> float:
    """Return the cycles of the matrix unit; `down` is how often each block of weights is loaded."""
    side = machine[Rate.SIDE]
    loading = down * side * side / 512 / flags[Flag.PARTIALS]  # a block of weights takes as long as this many rows
    pushed = max(math.ceil(kernel[Kernel.ROWS] / 8) * 8, loading)
    blocks = batches * matrix_blocks(kernel, ProductAxis.COLUMNS, packed, side)
    blocks *= matrix_blocks(kernel, ProductAxis.DEPTH, packed, side)
    dense = 2 * pushed * blocks * side * side / machine[Rate.MATRIX]
    dense += machine[Rate.SUMS] * (kernel[Kernel.TAPS] - 1) * kernel[Kernel.SUMS] / 4 / machine[Rate.VECTOR]
    return dense


@compiled(runtime=False)
def extent(kernel: NDArray, axis: int) -> float:
    """Return the size of an axis that a tile cuts, a `LoopAxis` or a `ProductAxis`.

    Narrow groups of a product share the matrix unit, which works on whole blocks of 128 x 128.
    """
    if kernel[Kernel.GROUPS] == 0:
        return kernel[Kernel.OUTER + axis]
    if axis == ProductAxis.ROWS:
        return max(1.0, kernel[Kernel.ROWS])
    packed = min(kernel[Kernel.GROUPS], max(1.0, math.floor(128 / max(1.0, kernel[Kernel.COLUMNS]))))
    return matrix_blocks(kernel, axis, packed, 128.0) * 128


@compiled(runtime=False)
def matrix_blocks(kernel: NDArray, axis: int, packed: float, side: float) -> float:
    """Return how many blocks of the matrix unit the columns or the depth of a product take."""
    size, taps = (
        max(1.0, kernel[Kernel.ROWS + axis] * packed),
        kernel[Kernel.TAPS] if axis == ProductAxis.DEPTH else 1.0,
    )
    if kernel[Kernel.GROUPS] > 1 or size < DEEP:
        return math.ceil(size / side) * taps
    return math.ceil(size * taps / side)


@compiled(runtime=False)
def unit(kernel: NDArray, axis: int) -> float:
    """Return the smallest piece that an axis is cut into."""
    if kernel[Kernel.GROUPS] == 0:
        return 128.0 if axis == LoopAxis.WIDTH else 8.0 if axis == LoopAxis.HEIGHT else 1.0
    return 8.0 if axis == ProductAxis.ROWS else 128.0


@compiled(runtime=False)
def legal_size(kernel: NDArray, axis: int, limit: float) -> float:
    """Return the largest tile size up to `limit`: the whole extent, or a power of two of units, at least one unit."""
    whole, smallest = extent(kernel, axis), unit(kernel, axis)
    if limit >= whole or whole <= smallest:
        return whole
    return smallest * 2.0 ** math.floor(math.log2(max(1.0, limit / smallest)))


@compiled(runtime=False)
def size_count(kernel: NDArray, axis: int) -> int:
    """Return the number of sizes that an axis can be cut to: powers of two of units, and the whole extent."""
    whole, smallest = extent(kernel, axis), unit(kernel, axis)
    return 1 if whole <= smallest else math.ceil(math.log2(whole / smallest)) + 1


@compiled(runtime=False)
def nth_size(kernel: NDArray, axis: int, number: int) -> float:
    """Return one of the sizes that an axis can be cut to, from small to large."""
    return min(unit(kernel, axis) * 2.0**number, extent(kernel, axis))


def legal_sizes(kernel: NDArray, axis: int) -> NDArray[np.float64]:
    """Return the sizes that an axis can be cut to, ascending; the last is the whole extent."""
    return np.array([nth_size(kernel, axis, number) for number in range(size_count(kernel, axis))])


@compiled(runtime=False)
def candidate_tiles(kernel: NDArray, tiles: NDArray) -> None:
    """Write the `(4, 3)` tiles that the compiler chooses among, from small to large."""
    for choice in range(4):
        tile = tiles[choice]
        if kernel[Kernel.GROUPS] > 0:
            rows, columns = 1024.0 if choice % 2 == 0 else 4096.0, 256.0 if choice < 2 else 1024.0
            tile[ProductAxis.ROWS] = legal_size(kernel, ProductAxis.ROWS, rows)
            tile[ProductAxis.COLUMNS] = legal_size(kernel, ProductAxis.COLUMNS, columns)
            tile[ProductAxis.DEPTH] = extent(kernel, ProductAxis.DEPTH)
        else:
            wanted = _SMALLEST * _GROWTH**choice
            tile[LoopAxis.WIDTH] = legal_size(kernel, LoopAxis.WIDTH, wanted)
            wanted /= tile[LoopAxis.WIDTH]
            tile[LoopAxis.HEIGHT] = legal_size(kernel, LoopAxis.HEIGHT, wanted)
            tile[LoopAxis.OUTER] = legal_size(kernel, LoopAxis.OUTER, wanted / tile[LoopAxis.HEIGHT])


@compiled(runtime=False)
def choose_tile(analytical: NDArray, kernel: NDArray, tiles: NDArray, tile: NDArray, flags: NDArray) -> None:
    """Write the tile and the order that are best of a few by the analytical model; the other flags stay.

    A tile of a loop that does not fit has to be shrunk.

    Args:
      analytical: the machine of the analytical model.
      kernel: `(KERNEL_WIDTH,)`.
      tiles: `(4, 3)` from `candidate_tiles`.
      tile: `(3,)`, written.
      flags: `(6,)`, its order written.
    """
    if kernel[Kernel.GROUPS] > 0:
        _for_product(analytical, kernel, tiles, tile, flags)
        return
    chosen = _for_loop(analytical, kernel)
    for axis in range(3):
        tile[axis] = tiles[chosen, axis]


@compiled(runtime=False)
def _for_loop(analytical: NDArray, kernel: NDArray) -> int:
    """Return the number of the largest tile whose windows surely fit, since each step waits for memory."""
    elements = kernel[Kernel.OUTER] * kernel[Kernel.HEIGHT] * kernel[Kernel.WIDTH]
    steps = 2 * (kernel[Kernel.READ] + kernel[Kernel.WRITTEN] + staged_bytes(kernel)) / analytical[Rate.SCRATCHPAD]
    choice, size = 3, _SMALLEST * _GROWTH**3
    while choice > 0 and size * steps > elements:
        size /= _GROWTH
        choice -= 1
    return choice


@compiled(runtime=False)
def _for_product(analytical: NDArray, kernel: NDArray, tiles: NDArray, tile: NDArray, flags: NDArray) -> None:
    """Write the best tile, each shrunk until it fits, and its order."""
    best, rows, columns, depth, order = math.inf, 0.0, 0.0, 0.0, 0.0
    for choice in range(4):
        if choice % 2 == 1 and tiles[choice, ProductAxis.ROWS] == tiles[choice - 1, ProductAxis.ROWS]:
            continue
        if choice > 1 and tiles[choice, ProductAxis.COLUMNS] == tiles[choice - 2, ProductAxis.COLUMNS]:
            continue
        cycles = _try_product(analytical, kernel, tiles[choice], tile, flags)
        if cycles < best:
            best, order = cycles, flags[Flag.ORDER]
            rows, columns, depth = tile[ProductAxis.ROWS], tile[ProductAxis.COLUMNS], tile[ProductAxis.DEPTH]
    tile[ProductAxis.ROWS], tile[ProductAxis.COLUMNS], tile[ProductAxis.DEPTH] = rows, columns, depth
    flags[Flag.ORDER] = order


@compiled(runtime=False)
def _try_product(analytical: NDArray, kernel: NDArray, wanted: NDArray, tile: NDArray, flags: NDArray) -> float:
    """Write a tile, shrunk until it fits, and its order: what costs more to read again stays; return the cycles."""
    for axis in range(3):
        tile[axis] = wanted[axis]
    down = kernel[Kernel.ROWS] / tile[ProductAxis.ROWS]
    across = kernel[Kernel.COLUMNS] / tile[ProductAxis.COLUMNS]
    again = kernel[Kernel.READ_LEFT] * (across - 1) > kernel[Kernel.READ_RIGHT] * (down - 1)
    flags[Flag.ORDER] = 1.0 if again else 0.0
    cycles = kernel_cycles(analytical, kernel, tile, flags)
    return cycles if cycles < math.inf else shrink_tile(analytical, kernel, tile, flags)


@compiled(runtime=False)
def shrink_tile(machine: NDArray, kernel: NDArray, tile: NDArray, flags: NDArray) -> float:
    """Halve a tile that does not fit until it does, the last axis first, and return the cycles.

    If the smallest tile does not fit either (a small result of large operands), nothing is pipelined.
    """
    for axis in (2, 1, 0):
        while tile[axis] > unit(kernel, axis):
            tile[axis] = legal_size(kernel, axis, tile[axis] / 2)
            cycles = kernel_cycles(machine, kernel, tile, flags)
            if cycles < math.inf:
                return cycles
    return _without_pipelining(machine, kernel)


@compiled(runtime=False)
def _without_pipelining(machine: NDArray, kernel: NDArray) -> float:
    """Return the cycles of a kernel that moves everything, then computes everything."""
    moved, work = kernel[Kernel.WRITTEN], 0.0
    for place in range(PLACES):
        moved += kernel[Kernel.READ + place]
        work += kernel[Kernel.WORK + place]
    rows, columns = kernel[Kernel.ROWS], kernel[Kernel.COLUMNS]
    multiplied = 2 * kernel[Kernel.GROUPS] * rows * columns * kernel[Kernel.DEPTH] * kernel[Kernel.TAPS]
    dense = multiplied / machine[Rate.MATRIX]
    return machine[Rate.LAUNCH] + moved / machine[Rate.MEMORY] + work / machine[Rate.VECTOR] + dense
