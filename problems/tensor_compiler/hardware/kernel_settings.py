"""Tiles and flags of kernels: the choices for each, the compiler's choice, and the cost of a choice."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .kernel_row import DEFAULT_FLAGS, Flag, Kernel
from .machine import Machine, Rate
from .timing import (
    candidate_tiles,
    choose_tile,
    extent,
    kernel_cycles,
    legal_sizes,
    nth_size,
    shrink_tile,
    size_count,
    unit,
)

compiled = compiled_for(__file__)


TILE_SLOTS, FLAG_SLOTS = range(3), range(3, 9)
SLOTS = ("tile 0", "tile 1", "tile 2", "buffers", "unroll", "prefetch", "order", "partials", "vectors")
"""The settings of a kernel: its tile along three axes, then its flags."""

FLAG_VALUES = {
    Flag.BUFFERS: (1.0, 2.0, 3.0, 4.0),
    Flag.UNROLL: (1.0, 2.0, 4.0, 8.0),
    Flag.PREFETCH: (0.0, 1.0, 2.0),
    Flag.ORDER: (0.0, 1.0),
    Flag.PARTIALS: (1.0, 2.0, 4.0),
    Flag.VECTORS: (1.0, 2.0, 4.0),
}
OF_PRODUCTS = (Flag.ORDER, Flag.PARTIALS)  # flags without effect on a kernel without a matrix product

FLAG_COUNTS = np.array([len(values) for values in FLAG_VALUES.values()])
FLAG_TABLE = np.array([[values[min(i, len(values) - 1)] for i in range(4)] for values in FLAG_VALUES.values()])
ONLY_OF_PRODUCTS = np.isin(np.arange(len(FLAG_COUNTS)), OF_PRODUCTS)


@dataclass(frozen=True)
class Settings:
    """The kernels of a program with the compiler's settings.

    Attributes:
      kernels: `(k, KERNEL_WIDTH)` with the columns of `Kernel`.
      runs: `(k,)` how often each runs.
      chosen: `(k, 9)` tile and flags, in the order of `SLOTS`.
      planned: `(k,)` cycles of one run of each under its settings, by the analytical model.
      fits: `(k,)` True if any tile fits; a kernel that no tile fits is not tuned.
    """

    kernels: NDArray[np.float64]
    runs: NDArray[np.float64]
    chosen: NDArray[np.float64]
    planned: NDArray[np.float64]
    fits: NDArray[np.bool_]

    def values(self, kernel: int, slot: int) -> NDArray[np.float64]:
        """Return the values of a slot of a kernel, ascending."""
        if slot in TILE_SLOTS:
            return legal_sizes(self.kernels[kernel], slot)
        flag = slot - len(TILE_SLOTS)
        if flag in OF_PRODUCTS and self.kernels[kernel, Kernel.GROUPS] == 0:
            return self.chosen[kernel, slot : slot + 1]
        return np.array(FLAG_VALUES[Flag(flag)])


def compile_kernels(kernels: NDArray[np.float64], runs: NDArray[np.float64], machine: Machine) -> Settings:
    """Return the compiler's settings for `(k, KERNEL_WIDTH)` kernels, by its analytical model."""
    k = len(kernels)
    chosen, planned, fits = np.empty((k, len(SLOTS))), np.empty(k), np.empty(k, bool)
    _compile(
        kernels, machine.array(), machine.analytical_model().array(), np.array(DEFAULT_FLAGS), chosen, planned, fits
    )
    return Settings(kernels, runs, chosen, planned, fits)


@compiled()
def _compile(
    kernels: NDArray,
    machine: NDArray,
    analytical: NDArray,
    flags: NDArray,
    chosen: NDArray,
    planned: NDArray,
    fits: NDArray,
) -> None:
    tiles = np.empty((4, 3))
    for k in range(len(kernels)):
        for flag in range(len(flags)):  # an assignment of an array takes seconds to compile
            chosen[k, 3 + flag] = flags[flag]
        candidate_tiles(kernels[k], tiles)
        choose_tile(analytical, kernels[k], tiles, chosen[k, :3], chosen[k, 3:])
        if kernel_cycles(machine, kernels[k], chosen[k, :3], chosen[k, 3:]) == np.inf:
            shrink_tile(machine, kernels[k], chosen[k, :3], chosen[k, 3:])
        fits[k] = kernel_cycles(machine, kernels[k], chosen[k, :3], chosen[k, 3:]) < np.inf
        planned[k] = kernel_cycles(analytical, kernels[k], chosen[k, :3], chosen[k, 3:]) if fits[k] else 0.0


@compiled()
def tuned_seconds(
    configs: NDArray,
    slots: NDArray,
    values: NDArray,
    starts: NDArray,
    kernels: NDArray,
    runs: NDArray,
    chosen: NDArray,
    machine: NDArray,
    seconds: NDArray,
    overflowing: NDArray,
) -> None:
    """Time tuned kernels.

    Args:
      configs: `(b, d)` indices.
      slots: `(d,)` the slot that each column sets.
      values: `(d, w)` the value of each index.
      starts: `(k + 1,)`; kernel i's columns are `starts[i]:starts[i + 1]`.
      kernels, runs, chosen: as in `Settings`.
      machine: `Machine.array()`.
      seconds: `(b,)`, filled; inf where a kernel's windows overflow.
      overflowing: `(b,)`, filled with the first such kernel, or -1.
    """
    setting = np.empty(9)
    for b in range(len(configs)):
        total, overflowing[b] = 0.0, -1
        for k in range(len(kernels)):
            cycles = _tuned_cycles(k, configs[b], slots, values, starts, kernels, chosen, machine, setting)
            if cycles == np.inf and overflowing[b] < 0:
                overflowing[b] = k
            total += cycles * runs[k]
        seconds[b] = total / machine[Rate.HERTZ]


@compiled()
def seconds_of_kernels(
    configs: NDArray,
    slots: NDArray,
    values: NDArray,
    starts: NDArray,
    kernels: NDArray,
    chosen: NDArray,
    machine: NDArray,
    seconds: NDArray,
) -> None:
    """Write the `(b, k)` seconds of one run of each tuned kernel; the other arguments are those of `tuned_seconds`."""
    setting = np.empty(9)
    for b in range(len(configs)):
        for k in range(len(kernels)):
            cycles = _tuned_cycles(k, configs[b], slots, values, starts, kernels, chosen, machine, setting)
            seconds[b, k] = cycles / machine[Rate.HERTZ]


@compiled(runtime=False)
def _tuned_cycles(
    k: int,
    config: NDArray,
    slots: NDArray,
    values: NDArray,
    starts: NDArray,
    kernels: NDArray,
    chosen: NDArray,
    machine: NDArray,
    setting: NDArray,
) -> float:
    """Return the cycles of kernel k; `setting` is memory for its settings."""
    for slot in range(9):
        setting[slot] = chosen[k, slot]
    for column in range(starts[k], starts[k + 1]):
        setting[slots[column]] = values[column, config[column]]
    return kernel_cycles(machine, kernels[k], setting[:3], setting[3:])


def number_of_choices(kernels: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return `(k, 9)`: the number of values of each slot of `(k, KERNEL_WIDTH)` kernels, in the order of `SLOTS`."""
    counts = np.empty((len(kernels), len(SLOTS)), np.int64)
    _count(kernels, counts)
    return counts


@compiled(runtime=False)
def _count(kernels: NDArray, counts: NDArray) -> None:
    for k in range(len(kernels)):
        for slot in range(counts.shape[1]):
            counts[k, slot] = value_count(kernels[k], slot)


@compiled(runtime=False)
def value_count(kernel: NDArray, slot: int) -> int:
    """Return the number of values of a slot."""
    if slot < 3:
        return size_count(kernel, slot)
    no_effect = ONLY_OF_PRODUCTS[slot - 3] and kernel[Kernel.GROUPS] == 0
    return 1 if no_effect else FLAG_COUNTS[slot - 3]


@compiled(runtime=False)
def effect(numbers: NDArray, kernel: NDArray) -> int:
    """Return a number that is equal for settings that do the same to a kernel, and 0 if they leave it as it is.

    Args:
      numbers: `(9,)` int8, as in `override`.
      kernel: `(KERNEL_WIDTH,)`.
    """
    found = 0
    for slot in range(len(numbers)):
        found = 128 * found + (min(numbers[slot], value_count(kernel, slot) - 1) if numbers[slot] > 0 else 0)
    return found


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
        count = size_count(kernel, axis)
        if numbers[axis] > 0 and count > 1:
            largest = tile[axis] >= extent(kernel, axis)
            chosen = count - 1 if largest else round(math.log2(tile[axis] / unit(kernel, axis)))
            tile[axis] = nth_size(kernel, axis, _place(numbers[axis], chosen, count))
    for flag in range(6):
        if numbers[3 + flag] > 0 and not (ONLY_OF_PRODUCTS[flag] and kernel[Kernel.GROUPS] == 0):
            chosen = 0
            while FLAG_TABLE[flag, chosen] != flags[flag]:
                chosen += 1
            flags[flag] = FLAG_TABLE[flag, _place(numbers[3 + flag], chosen, FLAG_COUNTS[flag])]


@compiled(runtime=False)
def _place(number: int, chosen: int, count: int) -> int:
    """Return the place among all values of the `number`-th value that is not the chosen one."""
    number = min(number, count - 1)
    return number - 1 if number - 1 < chosen else number
