"""The tile that the compiler chooses for a kernel by its analytical model: the best of a few."""

from __future__ import annotations

import math

from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .kernel_row import PLACES, Flag, Kernel, LoopAxis, ProductAxis
from .machine import Rate
from .tile_sizes import extent, legal_size, unit
from .timing import kernel_cycles, staged_bytes

compiled = compiled_for(__file__)

_SMALLEST, _GROWTH = 2.0**17, 2.0  # elements of the tiles of a loop that the compiler tries


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
def choose_tile(paper: NDArray, kernel: NDArray, tiles: NDArray, tile: NDArray, flags: NDArray) -> None:
    """Write the tile and the order that are best of a few by the analytical model; the other flags stay.

    A tile that does not fit has to be shrunk.

    Args:
      paper: the machine on paper.
      kernel: `(KERNEL_WIDTH,)`.
      tiles: `(4, 3)` from `candidate_tiles`.
      tile: `(3,)`, written.
      flags: `(6,)`, its order written.
    """
    chosen = _for_product(paper, kernel, tiles, flags) if kernel[Kernel.GROUPS] > 0 else _for_loop(paper, kernel)
    for axis in range(3):
        tile[axis] = tiles[chosen, axis]


@compiled(runtime=False)
def _for_loop(paper: NDArray, kernel: NDArray) -> int:
    """Return the number of the largest tile whose windows surely fit, since each step waits for memory."""
    elements = kernel[Kernel.OUTER] * kernel[Kernel.HEIGHT] * kernel[Kernel.WIDTH]
    steps = 2 * (kernel[Kernel.READ] + kernel[Kernel.WRITTEN] + staged_bytes(kernel)) / paper[Rate.SCRATCHPAD]
    choice, size = 3, _SMALLEST * _GROWTH**3
    while choice > 0 and size * steps > elements:
        size /= _GROWTH
        choice -= 1
    return choice


@compiled(runtime=False)
def _for_product(paper: NDArray, kernel: NDArray, tiles: NDArray, flags: NDArray) -> int:
    """Return the number of the best tile and write its order: the operand that costs more to read again stays."""
    best, chosen, order = math.inf, 0, 0.0
    left, right = kernel[Kernel.READ_LEFT], kernel[Kernel.READ_RIGHT]
    for choice in range(4):
        down = kernel[Kernel.ROWS] / tiles[choice, ProductAxis.ROWS]
        across = kernel[Kernel.COLUMNS] / tiles[choice, ProductAxis.COLUMNS]
        flags[Flag.ORDER] = 1.0 if left * (across - 1) > right * (down - 1) else 0.0
        cycles = kernel_cycles(paper, kernel, tiles[choice], flags)
        if cycles < best:
            best, chosen, order = cycles, choice, flags[Flag.ORDER]
    flags[Flag.ORDER] = order
    return chosen


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
