"""The features of a kernel with settings: what the compiler knows of it before it runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..fusion.kernel_choices import override
from ..fusion.kernel_timing import estimated_cycles
from ..fusion.state import FusionState
from ..hardware.kernel_row import DEFAULT_FLAGS, KERNEL_WIDTH, Flag, Kernel
from ..hardware.kernel_settings import FLAG_SLOTS, SLOTS, TILE_SLOTS
from ..hardware.machine import Rate
from ..hardware.timing import kernel_cycles
from ..layout.arrays import FusionGraph

compiled = compiled_for(__file__)

FEATURES = (*(column.name.lower() for column in Kernel), *SLOTS, "fits", "estimate")
_TILES, _FLAGS = len(TILE_SLOTS), len(FLAG_SLOTS)
_PENALTY = 100.0
"""Factor on the estimate of a kernel whose windows do not fit, which must be finite."""


@compiled(runtime=False)
def read_tuned_kernel(
    v: int, graph: FusionGraph, paper: NDArray, unlimited: NDArray, state: FusionState, features: NDArray
) -> None:
    """Write the `FEATURES` of the kernel of v with `state.settings`.

    Args:
      v: a node that has a kernel.
      graph: the laid-out program.
      paper: the machine on paper.
      unlimited: the same with a scratchpad for any windows, for the estimate if they do not fit.
      state: the kernels.
      features: written.
    """
    cycles = estimated_cycles(v, graph, paper, state)
    kernel, tile, flags = state.kernel, state.tile, state.flags
    if state.settings[v].any() and kernel_cycles(paper, kernel, tile, flags) < np.inf:  # else settings are ignored
        override(state.settings[v], kernel, tile, flags)
        cycles = kernel_cycles(paper, kernel, tile, flags)
    fits = cycles < np.inf
    if not fits:
        cycles = _PENALTY * kernel_cycles(unlimited, kernel, tile, flags)
    if kernel[Kernel.GROUPS] == 0:
        flags[Flag.ORDER] = 0.0  # it is of another kernel
    for column in range(KERNEL_WIDTH):
        features[column] = kernel[column]
    for axis in range(_TILES):
        features[KERNEL_WIDTH + axis] = tile[axis]
    for flag in range(_FLAGS):
        features[KERNEL_WIDTH + _TILES + flag] = flags[flag]
        flags[flag] = DEFAULT_FLAGS[flag]
    features[-2], features[-1] = 1.0 if fits else 0.0, cycles / paper[Rate.HERTZ]
