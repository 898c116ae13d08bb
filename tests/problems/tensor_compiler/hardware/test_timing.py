"""The timing of one kernel: bounds that must hold, and the compiler's quick choice of a tile against all tiles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.hardware import timing
from bbo_problems.tensor_compiler.hardware.kernel_settings import compile_kernels
from bbo_problems.tensor_compiler.hardware.machine import MACHINES

MACHINE = MACHINES["v5e"]
HARDWARE, PAPER = MACHINE.array(), MACHINE.on_paper().array()
FLAGS = np.array(timing.DEFAULT_FLAGS)


def loop(outer: float, height: float, width: float, operands: int = 1, work: float = 1.0) -> np.ndarray:
    """Return an element-wise kernel over f32 arrays."""
    kernel, elements = np.zeros(timing.KERNEL_WIDTH), outer * height * width
    kernel[timing.READ], kernel[timing.WORK], kernel[timing.WRITTEN] = (
        4 * elements * operands,
        elements * work,
        4 * elements,
    )
    kernel[timing.OPERANDS], kernel[timing.OPERATIONS], kernel[timing.SIZE] = operands, 1, 4
    kernel[timing.OUTER : timing.SIZE], kernel[timing.SUMS] = (outer, height, width), 4 * elements
    return kernel


def product(rows: float, columns: float, depth: float) -> np.ndarray:
    """Return a bf16 matrix product."""
    kernel = loop(1, rows, columns)
    kernel[timing.READ : timing.WRITTEN] = 0, 2 * rows * depth, 2 * depth * columns, 0, 0, 0
    kernel[timing.WRITTEN], kernel[timing.OPERANDS], kernel[timing.SIZE] = 2 * rows * columns, 2, 2
    kernel[timing.GROUPS : timing.SUMS + 1] = 1, rows, columns, depth, 1, 4 * rows * columns
    return kernel


def tiles(kernel: np.ndarray) -> list[np.ndarray]:
    return [np.array(t) for t in itertools.product(*(timing.legal_sizes(kernel, axis) for axis in range(3)))]


def test_an_elementwise_kernel_takes_its_bytes_over_the_bandwidth() -> None:
    kernel = loop(1, 4096, 4096)
    best = min(timing.kernel_cycles(HARDWARE, kernel, tile, FLAGS) for tile in tiles(kernel))
    least = 2 * 4 * 4096 * 4096 / (MACHINE.memory * MACHINE.stream)
    assert least < best < 1.15 * least  # some steps wait for memory


def test_a_large_matrix_product_takes_its_operations_over_the_peak() -> None:
    kernel = product(8192, 8192, 8192)
    best = min(timing.kernel_cycles(HARDWARE, kernel, tile, FLAGS) for tile in tiles(kernel))
    least = 2 * 8192.0**3 / MACHINE.matrix
    assert least < best < 1.2 * least


@pytest.mark.parametrize("kernel", [loop(8, 512, 1024, 3), product(4096, 1024, 2048)], ids=["loop", "product"])
def test_no_tile_beats_the_roofline_and_paper_is_never_slower(kernel: np.ndarray) -> None:
    moved = kernel[timing.READ : timing.WORK].sum() + kernel[timing.WRITTEN]
    dense = 2 * kernel[timing.GROUPS : timing.SUMS].prod()
    for tile in tiles(kernel):
        real, paper = (timing.kernel_cycles(m, kernel, tile, FLAGS) for m in (HARDWARE, PAPER))
        assert paper <= real
        assert real >= max(moved / MACHINE.memory, dense / MACHINE.matrix)


def test_a_tile_is_refused_exactly_when_its_windows_overflow() -> None:
    kernel = loop(64, 1024, 4096, operands=4)
    for tile in tiles(kernel):
        windows = 2 * 4 * (4 + 1) * np.prod(tile)
        assert np.isinf(timing.kernel_cycles(HARDWARE, kernel, tile, FLAGS)) == (windows > MACHINE.scratchpad)


def test_overlap_needs_two_buffers() -> None:
    kernel, flags = loop(64, 1024, 1024, work=64.0), FLAGS.copy()
    tile = np.array([1.0, 512.0, 1024.0])
    double = timing.kernel_cycles(HARDWARE, kernel, tile, flags)
    flags[timing.BUFFERS] = 1
    assert timing.kernel_cycles(HARDWARE, kernel, tile, flags) > 1.3 * double


@pytest.mark.parametrize("instance", ["resnet50", "transformer"])
def test_the_default_tile_is_legal_and_near_the_best_that_the_analytical_model_knows(instance: str) -> None:
    problem = bbo_suite.problem(f"fusion/{instance}")
    found = problem._fusion.kernels(problem.default)
    settings = compile_kernels(found.rows, problem._graph.weight[found.result], MACHINE)
    chosen = best = 0.0
    for kernel, runs, chose in zip(settings.kernels, settings.runs, settings.chosen, strict=True):
        assert all(chose[axis] in timing.legal_sizes(kernel, axis) for axis in range(3))
        flags = chose[3:].copy()
        chosen += runs * timing.kernel_cycles(PAPER, kernel, chose[:3], flags)
        costs = []
        for flags[timing.ORDER] in (0.0, 1.0):
            costs += [timing.kernel_cycles(PAPER, kernel, tile, flags) for tile in tiles(kernel)]
        best += runs * min(costs)
    assert best <= chosen < 1.15 * best


def test_a_small_result_of_large_operands_is_squeezed_and_not_lost() -> None:
    kernel = loop(1, 1, 1)
    kernel[timing.READ] = 1e9
    settings = compile_kernels(kernel[None], np.ones(1), MACHINE)
    assert not settings.fits[0]
    tile = settings.chosen[0, :3].copy()
    assert np.isfinite(timing.squeeze(HARDWARE, kernel, tile, FLAGS))
