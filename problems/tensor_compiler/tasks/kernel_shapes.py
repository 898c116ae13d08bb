"""Kernels drawn at random: by how often shapes occur in a corpus, or with sizes that are uniform on a log scale."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..hardware.kernel_row import KERNEL_WIDTH, Kernel

_CHAINS = {
    True: (Kernel.ROWS, Kernel.DEPTH, Kernel.COLUMNS),
    False: (Kernel.WIDTH, Kernel.HEIGHT, Kernel.OUTER),
}
"""The sizes in the order in which they are drawn, for matrix products and for loops."""


class Prior:
    """Prior-guided sampling (Ryu, Park and Sung 2022): sizes are drawn as a chain of conditional frequencies.

    First the kind of kernel, then each size among the kernels of the corpus that have the size before it. What is not
    a size (operands, operations, bytes for each element) is that of a kernel with the last size.

    Args:
      rows: `(k, KERNEL_WIDTH)` the corpus.
      counts: `(k,)` how often each kernel occurs.
    """

    def __init__(self, rows: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        self._rows, self._counts = rows, counts
        kinds = np.column_stack([rows[:, Kernel.GROUPS] > 0, rows[:, Kernel.GROUPS] > 1, rows[:, Kernel.TAPS] > 1])
        self._kinds = kinds @ [1, 2, 4]

    def draw(self, rng: Generator) -> NDArray[np.float64]:
        """Return a `(KERNEL_WIDTH,)` kernel."""
        place = self._one_of(np.arange(len(self._rows)), rng)
        alike = np.flatnonzero(self._kinds == self._kinds[place])
        chain, sizes = _CHAINS[bool(self._rows[place, Kernel.GROUPS] > 0)], []
        for size in chain:
            sizes.append(self._rows[place, size])
            place = self._one_of(alike[self._rows[alike, size] == sizes[-1]], rng)
        return _resized(self._rows[place], chain, sizes)

    def _one_of(self, places: NDArray[np.int64], rng: Generator) -> int:
        shares = self._counts[places] / self._counts[places].sum()
        return int(rng.choice(places, p=shares))


def _resized(kernel: NDArray[np.float64], chain: tuple[Kernel, ...], sizes: list[float]) -> NDArray[np.float64]:
    """Return a kernel with other sizes; its bytes and its work grow with the operands and the result."""
    first, second, third = np.array(sizes) / np.maximum(1.0, kernel[list(chain)])
    new = kernel.copy()
    new[list(chain)] = sizes
    if kernel[Kernel.GROUPS] > 0:
        result, left, right = first * third, first * second, second * third
        new[Kernel.OUTER] = max(1.0, np.round(kernel[Kernel.OUTER] * result))
    else:
        result, left, right = first * second * third, 1.0, 1.0
    new[[Kernel.READ_LEFT, Kernel.WORK_LEFT]] *= left
    new[[Kernel.READ_RIGHT, Kernel.WORK_RIGHT]] *= right
    new[[Kernel.READ, Kernel.WORK, Kernel.WRITTEN, Kernel.SUMS]] *= result
    return np.round(new)


class Uniform:
    """Kernels that follow no program: every size is uniform on a log scale."""

    def draw(self, rng: Generator) -> NDArray[np.float64]:
        """Return a `(KERNEL_WIDTH,)` kernel."""
        return _product(rng) if rng.random() < 0.5 else _loop(rng)


def _product(rng: Generator) -> NDArray[np.float64]:
    new, size = np.zeros(KERNEL_WIDTH), rng.choice([2.0, 4.0])
    rows, columns, depth = _log_uniform(rng, 1, 65536), _log_uniform(rng, 1, 8192), _log_uniform(rng, 1, 8192)
    groups = _log_uniform(rng, 2, 1024) if rng.random() < 0.25 else 1.0
    taps = rng.choice([3.0, 9.0, 25.0]) if rng.random() < 0.25 else 1.0
    elements = groups * rows * columns
    new[Kernel.GROUPS : Kernel.SUMS] = groups, rows, columns, depth, taps
    new[Kernel.READ_LEFT], new[Kernel.READ_RIGHT] = size * groups * rows * depth, size * groups * depth * columns * taps
    new[Kernel.OUTER : Kernel.SIZE] = groups, rows, columns
    return _fused(new, elements, size, 2, rng)


def _loop(rng: Generator) -> NDArray[np.float64]:
    new, size = np.zeros(KERNEL_WIDTH), rng.choice([2.0, 4.0])
    new[Kernel.OUTER : Kernel.SIZE] = _log_uniform(rng, 1, 4096), _log_uniform(rng, 1, 4096), _log_uniform(rng, 1, 8192)
    return _fused(new, float(np.prod(new[Kernel.OUTER : Kernel.SIZE])), size, 0, rng)


def _fused(
    new: NDArray[np.float64], elements: float, size: float, operands: int, rng: Generator
) -> NDArray[np.float64]:
    """Fill in a result of some elements, and a random number of further operands and operations."""
    more = int(rng.integers(operands == 0, 4))
    new[Kernel.READ], new[Kernel.WRITTEN] = more * elements * size, elements * size
    new[Kernel.OPERANDS], new[Kernel.OPERATIONS] = operands + more, _log_uniform(rng, 1, 64)
    new[Kernel.WORK] = elements * new[Kernel.OPERATIONS]
    new[Kernel.SUMS], new[Kernel.SIZE] = 4 * elements, size
    return new


def _log_uniform(rng: Generator, low: float, high: float) -> float:
    return float(np.round(np.exp(rng.uniform(np.log(low), np.log(high)))))
