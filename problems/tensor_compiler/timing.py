"""The hardware model: how many cycles one kernel takes.

A kernel walks over tiles with double buffering: while one tile is computed, the next is fetched and the last written.
Compiled with numba; all numbers are floats. A kernel has up to three places of work: 0 the loop over the result (for a
reduction, over its input), 1 and 2 what is computed in front of the left and right operand of a matrix product.
"""

from __future__ import annotations

import math

from numpy.typing import NDArray

from .compiled import compiled

HERTZ, MEMORY, MATRIX, VECTOR, VECTOR_PEAK, SCRATCHPAD, LAUNCH, CODE, STEP, WINDOW = range(10)

OVERLAP_LOSS = 0.15
"""Share of the work of the units that are not the bottleneck which is not hidden behind it."""

REGISTERS = 32.0
"""Values that a kernel's body keeps at hand; beyond, they go through the scratchpad."""


@compiled("always")
def pipelined(memory: float, matrix: float, vector: float, steps: float, step: float) -> float:
    """Return the cycles of `steps` iterations whose units overlap; the first fetch has nothing to hide behind."""
    busiest = max(memory, matrix, vector)
    hidden = memory + matrix + vector - busiest
    return busiest + OVERLAP_LOSS * hidden + memory / steps + steps * step


@compiled()
def kernel_cycles(
    machine: NDArray,
    load: NDArray,
    written: float,
    operands: float,
    operations: float,
    product: NDArray,
    result_bytes: float,
) -> float:
    """Return the cycles of one kernel.

    Args:
      machine: `Machine.array()`.
      load: `(6,)` bytes that one pass over each place reads from memory, then vector operations of one such pass.
      written: bytes of the result in memory.
      operands: how many arrays are read.
      operations: how many operations are fused.
      product: `(4,)` groups, rows, columns, depth of the matrix product in it; zeros if there is none.
      result_bytes: of the matrix product's own result, before anything is fused to it.
    """
    pressure = max(0.0, operands + operations / 4 - REGISTERS)
    spilled = 1 + 0.02 * pressure
    step = machine[STEP] + machine[WINDOW] * (operands + 1)
    start = machine[LAUNCH] + machine[CODE] * operations
    if product[0] > 0:
        return start + _product(machine, load, written, spilled, step, product, result_bytes)
    memory = (load[0] + written) / machine[MEMORY]
    fewest = math.ceil(2 * (load[0] + written) / machine[SCRATCHPAD])
    steps = max(1.0, fewest, math.sqrt(memory / step))
    return start + pipelined(memory, 0.0, load[3] * spilled / machine[VECTOR], steps, step)


@compiled("always")
def _product(
    machine: NDArray,
    load: NDArray,
    written: float,
    spilled: float,
    step: float,
    product: NDArray,
    result_bytes: float,
) -> float:
    """Return the cycles of a matrix product with the best tile for it; either operand may be the one that stays."""
    groups, rows, columns, depth = product[0], product[1], product[2], product[3]
    packed = min(groups, max(1.0, math.floor(128 / max(1.0, columns))))  # narrow groups share the matrix unit
    batches = math.ceil(groups / packed)
    wide = math.ceil(columns * packed / 128) * 128
    deep = math.ceil(depth * packed / 128) * 128
    padded = 2 * batches * rows * wide * deep / machine[MATRIX]
    best = math.inf
    tall = 32.0
    while tall < 4096:
        tall *= 4
        tile_rows = min(tall, rows)
        row_tiles = math.ceil(rows / tile_rows)
        broad = 64.0
        while broad < 2048:
            broad *= 2
            tile_columns = min(broad, wide)
            column_tiles = math.ceil(wide / tile_columns)
            share = 1 / (batches * row_tiles * column_tiles)
            windows = load[1] / (batches * row_tiles) + load[2] / (batches * column_tiles)
            windows += (load[0] + written) * share
            held = 2 * windows + 2 * result_bytes * share  # two buffers each, and the sums in 32 bits
            split = max(1.0, math.ceil(held / machine[SCRATCHPAD]))  # the depth is cut where a tile is too large
            steps = batches * row_tiles * column_tiles * split
            filling = padded * (1 + 32 / tile_rows)
            sums = (split - 1) * result_bytes / 4
            for keep_left in range(2):
                again_left = 1.0 if keep_left == 1 else column_tiles
                again_right = row_tiles if keep_left == 1 else 1.0
                memory = load[0] + written + load[1] * again_left + load[2] * again_right
                work = (load[3] + load[4] * again_left + load[5] * again_right + sums) * spilled
                cycles = pipelined(memory / machine[MEMORY], filling, work / machine[VECTOR], steps, step)
                best = min(best, cycles)
            if broad >= wide:
                break
        if tall >= rows:
            break
    return best
