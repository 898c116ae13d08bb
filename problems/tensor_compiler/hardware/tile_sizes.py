"""The sizes that a tile can have along each axis of a kernel."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .kernel_row import Kernel, LoopAxis, ProductAxis

compiled = compiled_for(__file__)

_DEEP = 32.0
"""Taps lie side by side in the depth of the matrix unit if each is at least this deep; otherwise they take turns."""


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
    if kernel[Kernel.GROUPS] > 1 or size < _DEEP:
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


def legal_sizes(kernel: NDArray, axis: int) -> NDArray[np.float64]:
    """Return the sizes that an axis can be cut to, ascending; the last is the whole extent."""
    whole, smallest = extent(kernel, axis), unit(kernel, axis)
    powers = smallest * 2.0 ** np.arange(max(0, math.ceil(math.log2(max(1.0, whole / smallest)))))
    return np.append(powers[powers < whole], whole)
