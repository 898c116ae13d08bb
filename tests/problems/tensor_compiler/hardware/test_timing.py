"""The timing of one kernel: bounds, and the compiler's choice of a tile; machines against JAX's own table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import bbo_suite
from bbo_problems.tensor_compiler.graph.build import read_graph
from bbo_problems.tensor_compiler.hardware.kernel_row import DEFAULT_FLAGS, KERNEL_WIDTH, Flag, Kernel
from bbo_problems.tensor_compiler.hardware.kernel_settings import compile_kernels
from bbo_problems.tensor_compiler.hardware.machine import MACHINES, split_machine
from bbo_problems.tensor_compiler.hardware.timing import kernel_cycles, legal_sizes, shrink_tile
from bbo_problems.tensor_compiler.tasks.programs import program
from bbo_suite import UserError

from ..small_programs import fusion_of

MACHINE = MACHINES["v5e"]
HARDWARE, ANALYTICAL = MACHINE.array(), MACHINE.analytical_model().array()
FLAGS = np.array(DEFAULT_FLAGS)


def loop(outer: float, height: float, width: float, operands: int = 1, work: float = 1.0) -> np.ndarray:
    """Return an element-wise kernel over f32 arrays."""
    kernel, elements = np.zeros(KERNEL_WIDTH), outer * height * width
    kernel[Kernel.READ], kernel[Kernel.WORK], kernel[Kernel.WRITTEN] = (
        4 * elements * operands,
        elements * work,
        4 * elements,
    )
    kernel[Kernel.OPERANDS], kernel[Kernel.OPERATIONS], kernel[Kernel.SIZE] = operands, 1, 4
    kernel[Kernel.OUTER : Kernel.SIZE], kernel[Kernel.SUMS] = (outer, height, width), 4 * elements
    return kernel


def product(rows: float, columns: float, depth: float) -> np.ndarray:
    """Return a bf16 matrix product."""
    kernel = loop(1, rows, columns)
    kernel[Kernel.READ : Kernel.WRITTEN] = 0, 2 * rows * depth, 2 * depth * columns, 0, 0, 0
    kernel[Kernel.WRITTEN], kernel[Kernel.OPERANDS], kernel[Kernel.SIZE] = 2 * rows * columns, 2, 2
    kernel[Kernel.GROUPS : Kernel.SUMS + 1] = 1, rows, columns, depth, 1, 4 * rows * columns
    return kernel


def tiles(kernel: np.ndarray) -> list[np.ndarray]:
    return [np.array(t) for t in itertools.product(*(legal_sizes(kernel, axis) for axis in range(3)))]


@pytest.mark.parametrize("kernel", [loop(8, 512, 1024, 3), product(4096, 1024, 2048)], ids=["loop", "product"])
def test_no_tile_beats_the_roofline_and_the_analytical_model_is_never_slower(kernel: np.ndarray) -> None:
    moved = kernel[Kernel.READ : Kernel.WORK].sum() + kernel[Kernel.WRITTEN]
    dense = 2 * kernel[Kernel.GROUPS : Kernel.SUMS].prod()
    for tile in tiles(kernel):
        real, analytical = (kernel_cycles(m, kernel, tile, FLAGS) for m in (HARDWARE, ANALYTICAL))
        assert analytical <= real
        assert real >= max(moved / MACHINE.memory, dense / MACHINE.matrix)


def test_a_tile_is_refused_exactly_when_its_windows_overflow() -> None:
    kernel = loop(64, 1024, 4096, operands=4)
    for tile in tiles(kernel):
        windows = 2 * 4 * (4 + 1) * np.prod(tile)
        assert np.isinf(kernel_cycles(HARDWARE, kernel, tile, FLAGS)) == (windows > MACHINE.scratchpad)


@pytest.mark.parametrize("instance", ["resnet50", "transformer"])
def test_the_default_tile_is_legal_and_near_the_best_that_the_analytical_model_knows(instance: str) -> None:
    fusion = fusion_of(read_graph(program(instance)))
    found = fusion.kernels(fusion.default())
    settings = compile_kernels(found.rows, found.runs, MACHINE)
    chosen = best = 0.0
    for kernel, runs, chose in zip(settings.kernels, settings.runs, settings.chosen, strict=True):
        assert all(chose[axis] in legal_sizes(kernel, axis) for axis in range(3))
        flags = chose[3:].copy()
        chosen += runs * kernel_cycles(ANALYTICAL, kernel, chose[:3], flags)
        costs = []
        for flags[Flag.ORDER] in (0.0, 1.0):
            costs += [kernel_cycles(ANALYTICAL, kernel, tile, flags) for tile in tiles(kernel)]
        best += runs * min(costs)
    assert best <= chosen < 1.15 * best


@pytest.mark.parametrize("columns", [1024, 2560, 8192])
def test_a_product_whose_windows_are_too_large_is_cut_in_depth_and_takes_little_more_than_the_matrix_unit(
    columns: int,
) -> None:
    """XLA:TPU estimates 1.05 to 1.11 times what the matrix unit takes."""
    kernel = product(8192, columns, 4096)
    kernel[Kernel.READ_LEFT] *= 2  # two arrays are combined in front of the product
    kernel[Kernel.WORK_LEFT] = 9 * 8192 * 4096
    chosen = compile_kernels(kernel[None], np.ones(1), MACHINE).chosen[0]
    cycles = kernel_cycles(HARDWARE, kernel, chosen[:3].copy(), chosen[3:].copy())
    assert 1 < cycles / (2 * 8192 * columns * 4096 / MACHINE.matrix) < 1.25


@pytest.mark.slow
def test_a_small_result_of_large_operands_has_a_finite_time_although_no_tile_fits() -> None:
    kernel = loop(1, 1, 1)
    kernel[Kernel.READ] = 1e9
    settings = compile_kernels(kernel[None], np.ones(1), MACHINE)
    assert not settings.fits[0]
    tile = settings.chosen[0, :3].copy()
    assert np.isfinite(shrink_tile(HARDWARE, kernel, tile, FLAGS))


@pytest.mark.parametrize("name", MACHINES)
def test_peak_rates_are_those_of_jax(name: str) -> None:
    table = pytest.importorskip("jax._src.pallas.mosaic.tpu_info")
    version, cores = table.ChipVersion(name), 2 if name in ("v4", "v5p") else 1
    noted, machine = table._get_tpu_info_impl(version, cores), MACHINES[name]
    assert machine.memory * machine.hertz == pytest.approx(noted.mem_bw_bytes_per_second * cores, rel=0.01)
    assert machine.matrix * machine.hertz == pytest.approx(noted.bf16_ops_per_second * cores, rel=0.01)
    assert machine.scratchpad <= noted.vmem_capacity_bytes * cores
    units = 2 if name in ("v2", "v3", "v4") else 4
    assert machine.vector == units * noted.num_lanes * noted.num_sublanes * cores


def test_the_machine_is_part_of_the_id() -> None:
    assert split_machine("resnet50") == ("resnet50", "v5e")
    assert split_machine("resnet50@v4") == ("resnet50", "v4")
    with pytest.raises(UserError, match="@v5e"):
        split_machine("resnet50@v5q")


@pytest.mark.slow
def test_machines_differ_in_cost_and_fingerprint_and_not_in_space() -> None:
    small, large = (bbo_suite.problem(f"fusion/resnet50@{machine}") for machine in ("v2", "v6e"))
    assert small.space.digest() == large.space.digest()
    assert small.fingerprint() != large.fingerprint()
    row = np.zeros((1, len(small.space)), np.int8)
    assert small.evaluate(row).values[0] > 2 * large.evaluate(row).values[0]
