"""The machines that kernels run on: rates and sizes of published accelerators."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from enum import IntEnum
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bbo_suite.core.variants import split_variant


@dataclass(frozen=True)
class Machine:
    """Rates of one core, per clock cycle.

    Attributes:
      hertz: clock cycles a second.
      memory: bytes moved between memory and scratchpad, at most.
      matrix: 16-bit floating point operations of the matrix units.
      vector: 32-bit lane operations of the vector unit.
      scratchpad: bytes that the windows of one kernel may take.
      launch: cycles to start and end a kernel that is a loop.
      latency: cycles that each iteration but the first waits for memory.
      step: cycles to start one iteration over tiles of a loop.
      stream: share of the peak of memory that is reached.
      stage: bytes moved for each byte of the 32-bit intermediate values of a reduction or of a narrow result.
      code: cycles to load one more operation of a kernel.
      loss: share of the work of the other units that is not hidden behind the bottleneck.
      chunk: extra bytes that each row of a tile costs.
      spill: share of the vector work that each value beyond the registers adds.
      loop: share of the vector work that is spent on the loop around it.
      side: rows and columns of the block of weights that a matrix unit holds.
      start: cycles to start and end a matrix product.
      turn: cycles to start one iteration over tiles of a product.
      fetch: cycles until the first window of a product's operand has arrived from memory.
      drain: cycles until the last window of a product's result is in memory.
      sums: vector operations for each sum of a product and each tap of its window but one.
    """

    hertz: float
    memory: float
    matrix: float
    vector: float
    scratchpad: float
    launch: float
    latency: float
    step: float
    stream: float
    stage: float
    code: float
    loss: float
    chunk: float
    spill: float
    loop: float
    side: float
    start: float
    turn: float
    fetch: float
    drain: float
    sums: float

    def array(self) -> NDArray[np.float64]:
        """Return the attributes in the order of `Rate`, for compiled code."""
        return _array(self)

    def analytical_model(self) -> Machine:
        """Return the machine of the data sheet, for which the compiler plans: peak rates, no second-order effects."""
        return replace(self, stream=1.0, stage=0.0, code=0.0, loss=0.0, chunk=0.0, spill=0.0, loop=0.0, sums=0.0)


class Rate(IntEnum):
    """Columns of `Machine.array()`, which are its attributes in order."""

    HERTZ = 0
    MEMORY = 1
    MATRIX = 2
    VECTOR = 3
    SCRATCHPAD = 4
    LAUNCH = 5
    LATENCY = 6
    STEP = 7
    STREAM = 8
    STAGE = 9
    CODE = 10
    LOSS = 11
    CHUNK = 12
    SPILL = 13
    LOOP = 14
    SIDE = 15
    START = 16
    TURN = 17
    FETCH = 18
    DRAIN = 19
    SUMS = 20


@cache
def _array(machine: Machine) -> NDArray[np.float64]:
    numbers = np.array(astuple(machine))
    numbers.flags.writeable = False
    return numbers


# These constants are not published. XLA gives a kernel 16 MiB of scratchpad (xla_tpu_scoped_vmem_limit_kib), which up
# to v4 is the whole scratchpad. Step, code and loss, and each machine's constants except its peaks and the side
# of its matrix unit, are fitted to XLA:TPU's estimates of kernels (see `calibration`; v2 and v3 take v4's, v5p takes
# v5e's). Chunk, spill and loop do not show in those estimates; their values are ours.
_COMMON = {
    "scratchpad": 2.0**24,
    "step": 215.0,
    "code": 0.35,
    "loss": 0.05,
    "chunk": 64.0,
    "spill": 0.02,
    "loop": 0.08,
}
_V4 = {
    "launch": 617.0, "latency": 127.0, "stream": 0.78, "stage": 1.0, "side": 128.0,
    "start": 396.0, "turn": 286.0, "fetch": 301.0, "drain": 0.0, "sums": 0.7,
}  # fmt: skip
_V5 = {
    "launch": 1822.0, "latency": 1300.0, "stream": 0.88, "stage": 1.0, "side": 128.0,
    "start": 1822.0, "turn": 276.0, "fetch": 1735.0, "drain": 0.0, "sums": 0.23,
}  # fmt: skip
_V6 = {
    "launch": 2118.0, "latency": 1300.0, "stream": 0.94, "stage": 0.5, "side": 256.0,
    "start": 0.0, "turn": 900.0, "fetch": 1290.0, "drain": 2100.0, "sums": 0.03,
}  # fmt: skip


def _tpu(
    hertz: float, teraflops: float, gigabytes: float, fitted: dict[str, float], cores: int = 1, units: int = 4
) -> Machine:
    """Return a machine from the published peaks of a core; `cores` work as one.

    The vector unit of a core has 8 x 128 lanes of `units` units each.
    """
    return Machine(
        hertz=hertz,
        memory=cores * gigabytes * 1e9 / hertz,
        matrix=cores * teraflops * 1e12 / hertz,
        vector=1024.0 * units * cores,
        **(_COMMON | fitted),
    )


# Peaks of a core in TFLOP/s of bfloat16 and GB/s of memory: JAX's own table of TPUs (pallas/mosaic/tpu_info.py there),
# which follows Google Cloud's pages. Clocks: that peak over matrix units x 128 x 128 x 2; for v6e, whose units are
# larger, this gives no plausible clock, so v5p's is used. A program runs on one core of v2 and v3, half a chip; the
# two cores of v4 and v5p work as one. Published diagrams of v2 and v3 show two units per lane; two units also fit
# XLA:TPU's estimates for v4 best, four those for v5e.
MACHINES = {
    "v2": _tpu(0.70e9, 23.0, 358.0, _V4, units=2),
    "v3": _tpu(1.07e9, 70.0, 412.5, _V4, units=2),
    "v4": _tpu(1.05e9, 137.5, 615.0, _V4, cores=2, units=2),
    "v5e": _tpu(1.50e9, 197.0, 820.0, _V5),
    "v5p": _tpu(1.75e9, 229.5, 1230.0, _V5, cores=2),
    "v6e": _tpu(1.75e9, 920.0, 1640.0, _V6),
}
DEFAULT_MACHINE = "v5e"
TWO_CORES = ("v4", "v5p")
"""Machines whose two cores work as one; XLA:TPU's estimates are for one core."""

COST_MODEL = 9
"""Raise this when the cost of any program and configuration changes; tests with stored costs then fail."""
KERNEL_TIMES = 8
"""The version that last changed how long a kernel takes, given its row; of programs see `ProgramGraph.cost_model`."""


def one_core(name: str) -> Machine:
    """Return the machine that XLA:TPU's estimates are for."""
    machine = MACHINES[name]
    if name not in TWO_CORES:
        return machine
    return replace(machine, memory=machine.memory / 2, matrix=machine.matrix / 2, vector=machine.vector / 2)


def split_machine(instance: str | Path) -> tuple[str, str]:
    """Return the parts before and after the @ of `program@machine`; the machine is the default if there is no @.

    Raises:
      UserError: there is no such machine.
    """
    program, machine = split_variant(instance, MACHINES)
    return program, machine or DEFAULT_MACHINE
