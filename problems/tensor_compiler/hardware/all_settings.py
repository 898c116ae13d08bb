"""All settings of kernels that fit into the scratchpad, and their times: for many kernels at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from .kernel_row import DEFAULT_FLAGS
from .kernel_settings import FLAG_SLOTS, FLAG_TABLE, TILE_SLOTS, number_of_choices, value_count
from .machine import Machine, Rate
from .timing import extent, kernel_cycles, legal_size, nth_size, shrink_tile

compiled = compiled_for(__file__)


_MOST = 64
"""The most values of a slot."""


def fitting_settings(
    rows: NDArray[np.float64], base: NDArray[np.float64], slots: range, machine: Machine
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return all settings of kernels that fit and differ from a base only in the tile, or only in the flags.

    Args:
      rows: `(k, KERNEL_WIDTH)` kernels.
      base: `(k, 9)` settings, in the order of `SLOTS`.
      slots: `TILE_SLOTS` or `FLAG_SLOTS`.

    Returns:
      `(k + 1,)` starts and `(s, 9)` settings; those of kernel i are `starts[i]:starts[i + 1]`.
    """
    starts, tiles = np.zeros(len(rows) + 1, np.int64), slots == TILE_SLOTS
    rows, base, numbers = np.ascontiguousarray(rows), np.ascontiguousarray(base), machine.array()
    arguments = (rows, base, tiles, numbers, starts)
    _list(*arguments, np.empty((0, 9)))
    settings = np.empty((starts[-1], 9))
    _list(*arguments, settings)
    return starts, settings


def setting_counts(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the `(k, 2)` numbers of tiles and of flags of kernels, whether they fit or not."""
    counts = number_of_choices(np.ascontiguousarray(rows))
    return np.column_stack([counts[:, slots].prod(axis=1) for slots in (list(TILE_SLOTS), list(FLAG_SLOTS))])


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
    """Return the `(k,)` seconds of kernels that no tile fits: everything is moved, then everything is computed."""
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
def _choices(kernel: NDArray, base: NDArray, tiles: bool, values: NDArray, sizes: NDArray) -> int:
    """Write the values of each slot of a kernel, and how many there are; return the number of slots."""
    if tiles:
        for axis in range(3):
            sizes[axis] = value_count(kernel, axis)
            for i in range(sizes[axis]):
                values[axis, i] = nth_size(kernel, axis, i)
        return 3
    for flag in range(6):
        sizes[flag] = value_count(kernel, 3 + flag)
        for i in range(sizes[flag]):
            values[flag, i] = FLAG_TABLE[flag, i] if sizes[flag] > 1 else base[3 + flag]
    return 6


@compiled()
def _list(rows: NDArray, base: NDArray, tiles: bool, machine: NDArray, starts: NDArray, settings: NDArray) -> None:
    """Write the starts, and the settings if `settings` is not empty."""
    values, sizes, place = np.empty((6, _MOST)), np.empty(6, np.int64), np.zeros(6, np.int64)
    setting, found = np.empty(9), 0
    for k in range(len(rows)):
        starts[k] = found
        slots = _choices(rows[k], base[k], tiles, values, sizes)
        first, total = (0 if tiles else 3), 1
        setting[:] = base[k]
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
