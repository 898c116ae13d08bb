"""Data sets from compilations of the real XLA:TPU compiler, whose own estimates are the labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from bbo_suite import UserError
from bbo_suite.core.libraries import require
from bbo_suite.files.cache import cache_folder

from ..tensor_compiler.calibration.comparison import timed
from ..tensor_compiler.calibration.compiler import Compiler
from ..tensor_compiler.calibration.kernels import (
    ScheduledKernel,
    bytes_in_layout,
    estimated_kernels,
    extents_of,
    leaf,
    operations_of,
    row,
)
from ..tensor_compiler.graph import shapes
from ..tensor_compiler.graph.flatten import Operation
from ..tensor_compiler.hardware.kernel_settings import SLOTS, compile_kernels
from ..tensor_compiler.hardware.machine import one_core
from ..tensor_compiler.hlo.opcodes import bytes_of
from .dataset import MOST_NODES, Kernels, Settings
from .kernels import KernelGraphs, number_of

ON_CHIP = 0.5
"""What stands for an array that is read from the scratchpad, or written to it, where 1 is the main memory."""
_NOISE = 0.01
"""Estimates of equal kernels that differ by a larger share contradict each other."""


def compiler(seconds: float) -> Compiler:
    """Return the compiler of variants of programs; what it compiles stays in the user's cache.

    Args:
      seconds: that one compilation may take. One that failed is not tried again.

    Raises:
      UserError: it is not installed.
    """
    require("libtpu", "XLA:TPU", "bbo_suite[tpu]")
    return Compiler(cache_folder(f"learned-xla-tpu-{version('libtpu')}"), f"{__package__}.xla_tpu_programs", seconds)


@dataclass
class Report:
    """What became of the compilations.

    Attributes:
      compiled, failed: compilations.
      found: kernels with an estimate, repeated ones included.
      large: those that were left out because they have more operations and operands than the networks take.
      contradicted: repetitions whose estimate is not that of the first, by more than `_NOISE`.
    """

    compiled: int = 0
    failed: int = 0
    found: int = 0
    large: int = 0
    contradicted: int = 0

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"{self.compiled:,} compilations, {self.failed:,} failed; {self.found:,} kernels found, of them"
            f" {self.large:,} too large and {self.contradicted:,} with another estimate than an equal one"
        )


def generate(
    programs: Sequence[str],
    variants: int,
    machine: str,
    text: Callable[[str, str], str],
    shown: Callable[[str, int], None],
) -> tuple[Kernels, Report]:
    """Return different kernels of programs; a kernel that several programs have belongs to the first.

    The estimates of the data set are those of our hardware model, with the tile that its own analytical model chooses.
    A kernel without an estimate of the compiler is left out, and so is one of more than `MOST_NODES` operations and
    operands.

    Args:
      programs: names, see `xla_tpu_programs`.
      variants: of each program, itself included.
      text: returns the scheduled HLO of a variant of a program on a machine; RuntimeError if it cannot be compiled.
      shown: called with each program and the kernels that it gave.

    Raises:
      UserError: no kernel has an estimate.
    """
    report, seen = Report(), dict[bytes, float]()
    graphs, owners = list[KernelGraphs](), list[int]()
    rows, cycles = list[NDArray[np.float64]](), list[float]()
    for number, name in enumerate(programs):
        before = len(rows)
        for kernel in _kernels(name, variants, machine, text, report):
            graph, (numbers, _) = graph_of(kernel), row(kernel)
            if graph.node_starts[-1] > MOST_NODES:
                report.large += 1
                continue
            key = graph.opcodes.tobytes() + graph.nodes.tobytes() + graph.edges.tobytes() + numbers.tobytes()
            if key in seen:
                report.contradicted += abs(kernel.cycles / seen[key] - 1) > _NOISE
                continue
            seen[key] = kernel.cycles
            graphs.append(graph)
            rows.append(numbers)
            cycles.append(kernel.cycles)
            owners.append(number)
        shown(name, len(rows) - before)
    if not rows:
        raise UserError("nothing was compiled; take more programs, or give each compilation more seconds")
    return _data(machine, programs, owners, KernelGraphs.joined(graphs), np.array(rows), np.array(cycles)), report


def _kernels(
    name: str, variants: int, machine: str, text: Callable[[str, str], str], report: Report
) -> Iterator[ScheduledKernel]:
    """Yield the kernels of a program's variants; if the program itself takes too long, so would its variants."""
    for number in range(variants):
        try:
            scheduled = text(f"{name}.{number}", machine)
        except RuntimeError:
            report.failed += 1
            if not number:
                break
            continue
        report.compiled += 1
        for kernel in estimated_kernels(scheduled):
            report.found += 1
            yield kernel


def _data(
    machine: str,
    programs: Sequence[str],
    owners: Sequence[int],
    graphs: KernelGraphs,
    rows: NDArray[np.float64],
    cycles: NDArray[np.float64],
) -> Kernels:
    core, k = one_core(machine), len(rows)
    chosen = compile_kernels(rows, np.ones(k), core).chosen.astype(np.float32)
    estimates = np.array(timed(rows, core)[0]) / core.hertz
    none = Settings(np.zeros(k + 1, np.int64), np.empty((0, len(SLOTS)), np.float32), np.empty(0), np.empty(0))
    numbers = np.array(owners, np.int64)
    return Kernels(machine, tuple(programs), numbers, graphs, rows, chosen, estimates, cycles / core.hertz, none, none)


def graph_of(kernel: ScheduledKernel) -> KernelGraphs:
    """Return a kernel's operations and the arrays that it reads."""
    nodes, results, used = operations_of(kernel)
    shown = np.flatnonzero(used)
    place = np.full(len(nodes), -1)
    place[shown] = np.arange(len(shown))
    ends = [(place[operand], place[i]) for i in shown.tolist() for operand in nodes[i].operands]
    edges = np.unique(np.array(ends, np.int16).reshape(-1, 2), axis=0)
    numbers = np.array([number_of(nodes[i].opcode) for i in shown], np.int16)
    features = np.log1p([_features(nodes[i]) for i in shown])
    memory = np.array([[_read(kernel, nodes[i]), _written(kernel, i, results)] for i in shown.tolist()])
    starts = (np.array([0, len(rows)]) for rows in (shown, edges))
    node_starts, edge_starts = starts
    return KernelGraphs(node_starts, numbers, np.hstack([features, memory]).astype(np.float32), edge_starts, edges)


def _features(node: Operation) -> NDArray[np.float64]:
    shape = node.shape
    own = (shapes.elements(shape), bytes_in_layout(shape), shapes.operations(node), bytes_of(leaf(shape).dtype))
    return np.array([*own, *shapes.matrix(node), *extents_of(node)])


def _read(kernel: ScheduledKernel, node: Operation) -> float:
    number = node.source.parameter_number if node.source and node.opcode == "parameter" else None
    if number is None or number >= len(kernel.operands):
        return 0.0
    return ON_CHIP if kernel.operands[number].on_chip else 1.0


def _written(kernel: ScheduledKernel, place: int, results: list[int]) -> float:
    if place not in results:
        return 0.0
    number = results.index(place)
    on_chip = number < len(kernel.results) and kernel.results[number].on_chip
    return ON_CHIP if on_chip else 1.0
