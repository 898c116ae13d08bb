"""Features of whole kernels with a tile and flags: what the compiler knows of them before they run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..tensor_compiler.hardware.kernel_row import Kernel, ProductAxis
from ..tensor_compiler.hardware.kernel_settings import SLOTS
from ..tensor_compiler.hardware.machine import MACHINES, Rate

_UNITS = ("memory", "vector unit", "matrix unit")
KERNEL_FEATURES = (
    *(f"log {column.name.lower()}" for column in Kernel),
    *(f"log {slot}" for slot in SLOTS),
    "log estimate",
    *(f"share of {unit}" for unit in _UNITS),
    *(f"log cuts {axis}" for axis in range(3)),
)


def features(
    rows: NDArray[np.float64], values: NDArray[np.float32], estimates: NDArray[np.float64], machine: str
) -> NDArray[np.float32]:
    """Return `(m, len(KERNEL_FEATURES))` features.

    The share of a unit is the log of the cycles that it needs at its peak rate over the estimate of the kernel.

    Args:
      rows: `(m, KERNEL_WIDTH)` with the columns of `Kernel`.
      values: `(m, 9)` in the order of `SLOTS`.
      estimates: `(m,)` seconds by the analytical model.
      machine: its name.
    """
    rates, cycles = MACHINES[machine].array(), estimates * MACHINES[machine].hertz
    read, work = rows[:, Kernel.READ : Kernel.WORK], rows[:, Kernel.WORK : Kernel.WRITTEN]
    memory = (read.sum(axis=1) + rows[:, Kernel.WRITTEN]) / rates[Rate.MEMORY]
    matrix = 2 * rows[:, Kernel.GROUPS : Kernel.SUMS].prod(axis=1) / rates[Rate.MATRIX]
    busy = np.column_stack([memory, work.sum(axis=1) / rates[Rate.VECTOR], matrix])
    shares = np.log1p(busy) - np.log(cycles)[:, None]
    product = rows[:, [Kernel.GROUPS]] > 0
    size = np.where(product, rows[:, Kernel.ROWS + np.array(ProductAxis)], rows[:, Kernel.OUTER : Kernel.SIZE])
    cuts = np.log(np.maximum(size, 1)) - np.log(np.maximum(values[:, :3], 1))
    columns = [np.log1p(rows), np.log1p(values), np.log(cycles), shares, cuts]
    return np.column_stack(columns).astype(np.float32)
