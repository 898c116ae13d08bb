"""The hardware model: how many cycles one kernel takes, for a tile and flags of code generation.

A kernel walks over tiles: while one tile is computed, the next is fetched and the previous one is written. The
compiler's own analytical model is the same walk on the machine of the data sheet (`Machine.on_paper`), without
second-order effects. A kernel is a row with the columns of `Kernel`, a machine is `Machine.array()`.
"""

from __future__ import annotations

import math

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .kernel_row import Flag, Kernel, LoopAxis, ProductAxis
from .machine import Rate
from .tile_sizes import extent, matrix_blocks

compiled = compiled_for(__file__)

_PRIME = 200.0  # cycles to set up one more window

REGISTERS = 32.0
"""Values that a kernel's body keeps in registers; further ones go through the scratchpad."""


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
