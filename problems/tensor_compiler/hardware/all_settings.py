"""All settings of kernels that fit into the scratchpad, and their times: for many kernels at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .kernel_row import DEFAULT_FLAGS, Kernel
from .kernel_settings import FLAG_VALUES, OF_PRODUCTS, TILE_SLOTS
from .machine import Machine, Rate
from .tile_choice import shrink_tile
from .tile_sizes import extent, legal_size, unit
from .timing import kernel_cycles

compiled = compiled_for(__file__)

_MOST = 64
"""The most values of a slot."""
_FLAGS = np.full((len(FLAG_VALUES), max(map(len, FLAG_VALUES.values()))), np.nan)
for _flag, _values in FLAG_VALUES.items():
    _FLAGS[_flag, : len(_values)] = _values
_SIZES = np.array([len(values) for values in FLAG_VALUES.values()])
_OF_PRODUCTS = np.isin(np.arange(len(FLAG_VALUES)), OF_PRODUCTS)


def fitting_settings(
    rows: NDArray[np.float64], given: NDArray[np.float64], slots: range, machine: Machine
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return all settings of kernels that fit and differ from given ones only in the tile, or only in the flags.

    Args:
      rows: `(k, KERNEL_WIDTH)` kernels.
      given: `(k, 9)` settings, in the order of `SLOTS`.
      slots: `TILE_SLOTS` or `FLAG_SLOTS`.

    Returns:
      `(k + 1,)` starts and `(s, 9)` settings; those of kernel i are `starts[i]:starts[i + 1]`.
    """
    starts, tiles = np.zeros(len(rows) + 1, np.int64), slots == TILE_SLOTS
    rows, given, numbers = np.ascontiguousarray(rows), np.ascontiguousarray(given), machine.array()
    arguments = (rows, given, tiles, numbers, _FLAGS, _SIZES, _OF_PRODUCTS, starts)
    _list(*arguments, np.empty((0, 9)))
    settings = np.empty((starts[-1], 9))
    _list(*arguments, settings)
    return starts, settings


def setting_counts(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the `(k, 2)` numbers of tiles and of flags of kernels, whether they fit or not."""
    counts = np.empty((len(rows), 2), np.int64)
    _count(np.ascontiguousarray(rows), _FLAGS, _SIZES, _OF_PRODUCTS, counts)
    return counts


def times(
    rows: NDArray[np.float64], owner: NDArray[np.int64], settings: NDArray[np.float64], machine: Machine
) -> NDArray[np.float64]:
    """Return the `(s,)` seconds of one run of kernels `rows[owner]` with `(s, 9)` settings; inf: it does not fit."""
    seconds = np.empty(len(settings))
    _time(np.ascontiguousarray(rows), owner, np.ascontiguousarray(settings), machine.array(), seconds)
    return seconds


def legal(rows: NDArray[np.float64], settings: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `(k, 9)` settings with each size of a tile cut to the largest legal one of its kernel."""
    cut = np.array(settings, np.float64)
    _cut(np.ascontiguousarray(rows), cut)
    return cut


def unpipelined(rows: NDArray[np.float64], machine: Machine) -> NDArray[np.float64]:
    """Return the `(k,)` seconds that kernels take which no tile fits."""
    seconds = np.empty(len(rows))
    _shrink(np.ascontiguousarray(rows), machine.array(), np.array(DEFAULT_FLAGS), seconds)
    return seconds


@compiled()
def _cut(rows: NDArray, settings: NDArray) -> None:
    for k in range(len(rows)):
        for axis in range(3):
            settings[k, axis] = legal_size(rows[k], axis, settings[k, axis])


@compiled()
def _shrink(rows: NDArray, machine: NDArray, flags: NDArray, seconds: NDArray) -> None:
    tile = np.empty(3)
    for k in range(len(rows)):
        for axis in range(3):
            tile[axis] = extent(rows[k], axis)
        seconds[k] = shrink_tile(machine, rows[k], tile, flags) / machine[Rate.HERTZ]


@compiled()
def _time(rows: NDArray, owner: NDArray, settings: NDArray, machine: NDArray, seconds: NDArray) -> None:
    for s in range(len(settings)):
        seconds[s] = kernel_cycles(machine, rows[owner[s]], settings[s, :3], settings[s, 3:]) / machine[Rate.HERTZ]


@compiled(runtime=False)
def _choices(
    kernel: NDArray,
    given: NDArray,
    tiles: bool,
    flags: NDArray,
    flag_sizes: NDArray,
    of_products: NDArray,
    values: NDArray,
    sizes: NDArray,
) -> int:
    """Write the values of each slot of a kernel, and how many there are; return the number of slots."""
    if tiles:
        for axis in range(3):
            size, whole, n = unit(kernel, axis), extent(kernel, axis), 0
            while size < whole:
                values[axis, n] = size
                size *= 2
                n += 1
            values[axis, n] = whole
            sizes[axis] = n + 1
        return 3
    for flag in range(6):
        fixed = of_products[flag] and kernel[Kernel.GROUPS] == 0
        sizes[flag] = 1 if fixed else flag_sizes[flag]
        for i in range(sizes[flag]):
            values[flag, i] = given[3 + flag] if fixed else flags[flag, i]
    return 6


@compiled()
def _list(
    rows: NDArray,
    given: NDArray,
    tiles: bool,
    machine: NDArray,
    flags: NDArray,
    flag_sizes: NDArray,
    of_products: NDArray,
    starts: NDArray,
    settings: NDArray,
) -> None:
    """Write the starts, and the settings if there is room for them."""
    values, sizes, place = np.empty((6, _MOST)), np.empty(6, np.int64), np.zeros(6, np.int64)
    setting, found = np.empty(9), 0
    for k in range(len(rows)):
        starts[k] = found
        slots = _choices(rows[k], given[k], tiles, flags, flag_sizes, of_products, values, sizes)
        first, total = (0 if tiles else 3), 1
        setting[:] = given[k]
        for slot in range(slots):
            total *= sizes[slot]
        for number in range(total):
            rest = number
            for back in range(slots):
                slot = slots - 1 - back
                place[slot] = rest % sizes[slot]
                rest //= sizes[slot]
                setting[first + slot] = values[slot, place[slot]]
            if kernel_cycles(machine, rows[k], setting[:3], setting[3:]) < np.inf:
                if len(settings) > 0:
                    settings[found] = setting
                found += 1
    starts[len(rows)] = found


@compiled()
def _count(rows: NDArray, flags: NDArray, flag_sizes: NDArray, of_products: NDArray, counts: NDArray) -> None:
    values, sizes, given = np.empty((6, _MOST)), np.empty(6, np.int64), np.zeros(9)
    for k in range(len(rows)):
        for stage in range(2):
            slots = _choices(rows[k], given, stage == 0, flags, flag_sizes, of_products, values, sizes)
            counts[k, stage] = 1
            for slot in range(slots):
                counts[k, stage] *= sizes[slot]
