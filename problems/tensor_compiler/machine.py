"""What a kernel runs on: rates and sizes of published accelerators."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Machine:
    """Rates of one core, per clock cycle.

    Attributes:
      hertz: clock cycles a second.
      memory: bytes moved between memory and scratchpad.
      matrix: 16-bit floating point operations of the matrix units.
      vector: 32-bit lane operations that the vector unit keeps up, loads, stores and conversions beside them.
      vector_peak: the most it can do.
      scratchpad: bytes that the windows of one kernel may take.
      launch: cycles to start and end a kernel.
      code: cycles to load one more operation of a kernel.
      step: cycles to start one iteration over tiles.
      window: cycles that each operand's window adds to a step.
    """

    hertz: float
    memory: float
    matrix: float
    vector: float
    vector_peak: float
    scratchpad: float
    launch: float
    code: float
    step: float
    window: float

    def array(self) -> NDArray[np.float64]:
        """Return the attributes in order, for compiled code."""
        return np.array(astuple(self))

    def on_paper(self) -> Machine:
        """Return the machine of the data sheet, which the compiler plans for: the vector unit is always at its peak."""
        return replace(self, vector=self.vector_peak)


MACHINES = {
    # Google Cloud, "TPU v5e": 197 TFLOP/s bf16, 819 GB/s, at 1.5 GHz. The vector unit has 8 x 128 lanes of four
    # units; one operation a lane and cycle is taken to be kept up. XLA gives a kernel 16 MiB of scratchpad by default
    # (xla_tpu_scoped_vmem_limit_kib). Its own estimates show some 1,800 cycles for a kernel that does nothing.
    "v5e": Machine(1.5e9, 546.0, 131_333.0, 1024.0, 4096.0, 2.0**24, 1500.0, 6.0, 10.0, 4.0),
}
