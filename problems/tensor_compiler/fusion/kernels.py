"""The kernels of a fused program: their rows, keys and cycles, and the run time of the program.

The row of a kernel includes its guests (see `guests`), which have no row, key or cycles of their own.
Each changed kernel is timed, and all are summed up. The sum is a binary tree over the nodes, so it does not depend on
how many kernels have changed. A key is a hash of everything that the timing of a kernel depends on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, mix

from ..hardware.kernel_row import DEFAULT_FLAGS, PRODUCT_COLUMNS, Kernel
from ..hardware.kernel_settings import effect, override
from ..hardware.timing import choose_tile, kernel_cycles, shrink_tile
from ..layout.arrays import FusionGraph, Node
from .guests import is_kernel
from .state import Counter, FusionState, Shared, Tally

compiled = compiled_for(__file__)


@compiled()
def describe_kernels(result: NDArray, graph: FusionGraph, state: FusionState, rows: NDArray) -> None:
    """Write the `(k, KERNEL_WIDTH)` rows of the `(k,)` kernels, with the columns of `Kernel`."""
    for i in range(len(result)):
        _describe(result[i], _shaping(result[i], state), graph, state, rows[i])


@compiled(runtime=False)
def time_kernels(
    whole: bool, tuned: bool, graph: FusionGraph, machine: NDArray, analytical: NDArray, state: FusionState
) -> None:
    """Time the touched kernels, with `state.settings` if `tuned`; if `whole`, these are all kernels."""
    size = len(state.sums) // 2
    if whole:
        state.cycles[:] = 0.0
        state.sums[:] = 0.0
    for i in range(state.counter[Counter.TOUCHED]):
        v = state.touched[i]
        cycles = _cycles(v, tuned, graph, machine, analytical, state) if is_kernel(v, state) else 0.0
        put_cycles(v, cycles, not whole, graph, state)
    if whole:
        for parent in range(size - 1, 0, -1):
            state.sums[parent] = state.sums[2 * parent] + state.sums[2 * parent + 1]


@compiled(runtime=False)
def put_cycles(v: int, cycles: float, summed: bool, graph: FusionGraph, state: FusionState) -> None:
    """Note the cycles of one run of the kernel of v, and add the kernels up again if `summed`."""
    place = len(state.sums) // 2 + v
    state.cycles[v] = cycles
    state.sums[place] = cycles * graph.node[v, Node.RUNS]
    parent = place // 2 if summed else 0
    while parent > 0:
        state.sums[parent] = state.sums[2 * parent] + state.sums[2 * parent + 1]
        parent //= 2


@compiled(runtime=False)
def first_overflow(state: FusionState) -> int:
    """Return the first node whose kernel overflows the scratchpad, or -1."""
    if state.sums[1] < np.inf:
        return -1
    size, at = len(state.sums) // 2, 1
    while at < size:
        at = 2 * at if state.sums[2 * at] == np.inf else 2 * at + 1
    return at - size


@compiled(runtime=False)
def _cycles(
    v: int, tuned: bool, graph: FusionGraph, machine: NDArray, analytical: NDArray, state: FusionState
) -> float:
    """Return the cycles of the kernel of v with the compiler's choices, which settings override if `tuned`."""
    kernel, tile, flags, heavy = state.kernel, state.tile, state.flags, _shaping(v, state)
    _describe(v, heavy, graph, state, kernel)
    choose_tile(analytical, kernel, graph.tiles[graph.row[heavy]], tile, flags)
    cycles = kernel_cycles(machine, kernel, tile, flags)
    fits = cycles < np.inf
    if not fits:
        cycles = shrink_tile(machine, kernel, tile, flags)
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
def describe_kernel(v: int, graph: FusionGraph, state: FusionState) -> None:
    """Write the row of the kernel of v to `state.kernel`."""
    _describe(v, _shaping(v, state), graph, state, state.kernel)


@compiled(runtime=False)
def estimated_cycles(v: int, graph: FusionGraph, analytical: NDArray, state: FusionState) -> float:
    """Return the cycles of the kernel of v by the analytical model, with the compiler's choices; write its row."""
    return _cycles(v, False, graph, analytical, analytical, state)


@compiled(runtime=False)
def _describe(v: int, heavy: int, graph: FusionGraph, state: FusionState, kernel: NDArray) -> None:
    """Write the row of the kernel of v with its guests; `heavy` decides its shape."""
    for column in range(Kernel.WRITTEN):
        kernel[column] = state.load[v, column]
    row = graph.row[heavy]
    for column in range(PRODUCT_COLUMNS):
        kernel[Kernel.GROUPS + column] = graph.loops[row, column]
    for column in range(3):
        kernel[Kernel.OUTER + column] = graph.loops[row, PRODUCT_COLUMNS + column]
    kernel[Kernel.WRITTEN], kernel[Kernel.SIZE] = graph.node[v, Node.BYTES], graph.node[v, Node.ELEMENT_BYTES]
    kernel[Kernel.OPERANDS], kernel[Kernel.OPERATIONS] = state.tally[v, Tally.OPERANDS], state.tally[v, Tally.FUSED]
    kernel[Kernel.SUMS] = graph.node[heavy, Node.ELEMENTS] * 4
    guest = state.tally[v, Tally.FIRST]
    while guest >= 0:
        kernel[Kernel.READ] += state.load[guest, Kernel.READ] - state.shared[guest, Shared.BYTES]
        kernel[Kernel.WORK] += state.load[guest, Kernel.WORK]
        kernel[Kernel.WRITTEN] += graph.node[guest, Node.BYTES]
        kernel[Kernel.OPERANDS] += state.tally[guest, Tally.OPERANDS] - state.shared[guest, Shared.ARRAYS]
        kernel[Kernel.OPERATIONS] += state.tally[guest, Tally.FUSED]
        guest = state.tally[guest, Tally.NEXT]


@compiled(runtime=False)
def _shaping(v: int, state: FusionState) -> int:
    """Return the node that decides the shape of the kernel of v."""
    return state.tally[v, Tally.HEAVY] if state.tally[v, Tally.HEAVY] >= 0 else v


@compiled()
def kernel_keys(places: NDArray, settings: NDArray, graph: FusionGraph, state: FusionState, keys: NDArray) -> None:
    """Write the `(k,)` keys of the kernels of `(k,)` nodes with `(k, 9)` settings."""
    for i in range(len(places)):
        describe_kernel(places[i], graph, state)
        keys[i] = tuned_key(settings[i], state.kernel)


@compiled(runtime=False)
def tuned_key(settings: NDArray, kernel: NDArray) -> np.uint64:
    """Return the key of a `(KERNEL_WIDTH,)` kernel with `(9,)` settings: that of its row if these do nothing."""
    key, number = row_key(kernel), effect(settings, kernel)
    return mix(key, np.uint64(number)) if number != 0 else key


@compiled(runtime=False)
def row_key(kernel: NDArray) -> np.uint64:
    """Return the key of a `(KERNEL_WIDTH,)` kernel."""
    key, words = np.uint64(0), kernel.view(np.uint64)
    for i in range(len(words)):
        key = mix(key, words[i])
    return key
