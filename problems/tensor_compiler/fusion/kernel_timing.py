"""How long a fused program takes: each kernel that has changed is timed, and all are summed up.

The sum is a binary tree over the nodes, so it is the same whether one kernel has changed or all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..hardware.timing import (
    DEFAULT_FLAGS,
    GROUPS,
    OPERATIONS,
    OUTER,
    SIZE,
    SUMS,
    WRITTEN,
    kernel_cycles,
    settle,
    squeeze,
)
from ..hardware.timing import OPERANDS as ARRAYS_READ
from ..layout.arrays import BYTES, ELEMENTS, ITEM, WEIGHT, Arrays
from .kernel_choices import override
from .state import FUSED, HEAVY, OPERANDS, TOUCHED, State


@compiled()
def describe_kernels(result: NDArray, graph: Arrays, state: State, rows: NDArray) -> None:
    """Write all that the timing of the `(k,)` kernels depends on, `(k, KERNEL_WIDTH)` (see `timing`)."""
    for i in range(len(result)):
        _describe(result[i], _shaping(result[i], state), graph, state, rows[i])


@compiled(runtime=False)
def time_kernels(whole: bool, tuned: bool, graph: Arrays, machine: NDArray, paper: NDArray, state: State) -> None:
    """Time the kernels that were touched, for `state.settings` if `tuned`; if `whole`, there are no others."""
    size = len(state.sums) // 2
    if whole:
        state.cycles[:] = 0.0
        state.sums[:] = 0.0
    for i in range(state.counter[TOUCHED]):
        v = state.touched[i]
        state.cycles[v] = _cycles(v, tuned, graph, machine, paper, state) if state.tally[v, FUSED] > 0 else 0.0
        state.sums[size + v] = state.cycles[v] * graph.node[v, WEIGHT]
        parent = 0 if whole else (size + v) // 2
        while parent > 0:
            state.sums[parent] = state.sums[2 * parent] + state.sums[2 * parent + 1]
            parent //= 2
    if whole:
        for parent in range(size - 1, 0, -1):
            state.sums[parent] = state.sums[2 * parent] + state.sums[2 * parent + 1]


@compiled(runtime=False)
def first_overflow(state: State) -> int:
    """Return the first node whose kernel takes forever, or -1."""
    if state.sums[1] < np.inf:
        return -1
    size, at = len(state.sums) // 2, 1
    while at < size:
        at = 2 * at if state.sums[2 * at] == np.inf else 2 * at + 1
    return at - size


@compiled(runtime=False)
def _cycles(v: int, tuned: bool, graph: Arrays, machine: NDArray, paper: NDArray, state: State) -> float:
    """Return the cycles of the kernel of v as the compiler sets it, or as far as nothing else is set for it."""
    kernel, tile, flags, heavy = state.kernel, state.tile, state.flags, _shaping(v, state)
    _describe(v, heavy, graph, state, kernel)
    settle(paper, kernel, graph.tiles[graph.row[heavy]], tile, flags)
    cycles = kernel_cycles(machine, kernel, tile, flags)
    fits = cycles < np.inf
    if not fits:
        cycles = squeeze(machine, kernel, tile, flags)
    if not tuned or not state.settings[v].any():
        return cycles
    if not fits and kernel_cycles(machine, kernel, tile, flags) == np.inf:
        return cycles  # no tile fits: the kernel is not tuned, as in `kernel_settings.Settings`
    override(state.settings[v], kernel, tile, flags)
    cycles = kernel_cycles(machine, kernel, tile, flags)
    for flag in range(len(DEFAULT_FLAGS)):
        flags[flag] = DEFAULT_FLAGS[flag]
    return cycles


@compiled(runtime=False)
def _describe(v: int, heavy: int, graph: Arrays, state: State, kernel: NDArray) -> None:
    """Write all that the timing of the kernel of v depends on; `heavy` decides its shape."""
    for column in range(6):
        kernel[column] = state.load[v, column]
    row = graph.row[heavy]
    for column in range(SUMS - GROUPS):
        kernel[GROUPS + column] = graph.loops[row, column]
    for column in range(3):
        kernel[OUTER + column] = graph.loops[row, SUMS - GROUPS + column]
    kernel[WRITTEN], kernel[SIZE] = graph.node[v, BYTES], graph.node[v, ITEM]
    kernel[ARRAYS_READ], kernel[OPERATIONS] = state.tally[v, OPERANDS], state.tally[v, FUSED]
    kernel[SUMS] = graph.node[heavy, ELEMENTS] * 4


@compiled(runtime=False)
def _shaping(v: int, state: State) -> int:
    """Return the node that decides the shape of the kernel of v."""
    return state.tally[v, HEAVY] if state.tally[v, HEAVY] >= 0 else v
