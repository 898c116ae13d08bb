"""The settings of a kernel as small numbers: 0 is the compiler's choice, and 1, 2, ... are all other values.

A row of zeros has the same meaning for every kernel, whatever the fusion, and no value has two numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..graph.graph import ProgramGraph
from ..hardware.kernel_row import KERNEL_WIDTH, PRODUCT_COLUMNS, Kernel
from ..hardware.kernel_settings import FLAG_VALUES, OF_PRODUCTS, SLOTS
from ..hardware.tile_sizes import extent, unit

compiled = compiled_for(__file__)

_COUNTS = np.array([len(values) for values in FLAG_VALUES.values()])
_VALUES = np.array([[values[min(i, len(values) - 1)] for i in range(4)] for values in FLAG_VALUES.values()])
_ONLY_OF_PRODUCTS = np.isin(np.arange(len(_COUNTS)), OF_PRODUCTS)


def most_choices(graph: ProgramGraph) -> NDArray[np.int64]:
    """Return `(9,)`: the largest number of values of each slot, over all kernels that a program can have."""
    kernels = np.zeros((len(graph.tables.loops), KERNEL_WIDTH))
    kernels[:, Kernel.GROUPS : Kernel.SUMS] = graph.tables.loops[:, :PRODUCT_COLUMNS]
    kernels[:, Kernel.OUTER : Kernel.SIZE] = graph.tables.loops[:, PRODUCT_COLUMNS:]
    return number_of_choices(kernels).max(axis=0)


def number_of_choices(kernels: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return `(k, 9)`: the number of values of each slot of `(k, KERNEL_WIDTH)` kernels, in the order of `SLOTS`."""
    counts = np.empty((len(kernels), len(SLOTS)), np.int64)
    _count(kernels, counts)
    return counts


@compiled(runtime=False)
def _count(kernels: NDArray, counts: NDArray) -> None:
    for k in range(len(kernels)):
        for slot in range(counts.shape[1]):
            counts[k, slot] = _values(kernels[k], slot)


@compiled(runtime=False)
def _values(kernel: NDArray, slot: int) -> int:
    """Return the number of values of a slot."""
    if slot < 3:
        return _sizes(kernel, slot)
    no_effect = _ONLY_OF_PRODUCTS[slot - 3] and kernel[Kernel.GROUPS] == 0
    return 1 if no_effect else _COUNTS[slot - 3]


@compiled(runtime=False)
def effect(numbers: NDArray, kernel: NDArray) -> int:
    """Return a number that is equal for settings that do the same to a kernel, and 0 if they leave it as it is.

    Args:
      numbers: `(9,)` int8, as in `override`.
      kernel: `(KERNEL_WIDTH,)`.
    """
    found = 0
    for slot in range(len(numbers)):
        found = 128 * found + (min(numbers[slot], _values(kernel, slot) - 1) if numbers[slot] > 0 else 0)
    return found


@compiled(runtime=False)
def _sizes(kernel: NDArray, axis: int) -> int:
    """Return the number of tile sizes along an axis (see `tile_sizes.legal_sizes`)."""
    whole, smallest = extent(kernel, axis), unit(kernel, axis)
    return 1 if whole <= smallest else math.ceil(math.log2(whole / smallest)) + 1


@compiled(runtime=False)
def override(numbers: NDArray, kernel: NDArray, tile: NDArray, flags: NDArray) -> None:
    """Replace the compiler's choice by the settings of a kernel.

    Args:
      numbers: `(9,)` in the order of `SLOTS`; a larger number than the last value's means the last value.
      kernel: `(KERNEL_WIDTH,)`.
      tile: `(3,)` the compiler's, written.
      flags: `(6,)` the compiler's, written.
    """
    for axis in range(3):
        count = _sizes(kernel, axis)
        if numbers[axis] > 0 and count > 1:
            whole, smallest = extent(kernel, axis), unit(kernel, axis)
            chosen = count - 1 if tile[axis] >= whole else round(math.log2(tile[axis] / smallest))
            tile[axis] = min(smallest * 2.0 ** _place(numbers[axis], chosen, count), whole)
    for flag in range(6):
        if numbers[3 + flag] > 0 and not (_ONLY_OF_PRODUCTS[flag] and kernel[Kernel.GROUPS] == 0):
            chosen = 0
            while _VALUES[flag, chosen] != flags[flag]:
                chosen += 1
            flags[flag] = _VALUES[flag, _place(numbers[3 + flag], chosen, _COUNTS[flag])]


@compiled(runtime=False)
def _place(number: int, chosen: int, count: int) -> int:
    """Return the place among all values of the `number`-th value that is not the chosen one."""
    number = min(number, count - 1)
    return number - 1 if number - 1 < chosen else number
