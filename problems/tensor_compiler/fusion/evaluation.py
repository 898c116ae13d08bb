"""The costs of candidates of the fusion pass: an update from the previous candidate, or a sweep if much differs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hardware.machine import Rate
from ..layout.arrays import FusionGraph
from .guests import is_kernel
from .incremental import IncomingEdges, update
from .kernels import first_overflow, time_kernels
from .state import Counter, FusionState, Known
from .sweep import sweep

compiled = compiled_for(__file__)


FEW = 32
"""If more than one column in this many differs, a sweep is about as fast as an update."""
_BLOCK = 64


@compiled()
def evaluate(
    configs: NDArray,
    settings: NDArray,
    graph: FusionGraph,
    inputs: IncomingEdges,
    machine: NDArray,
    analytical: NDArray,
    state: FusionState,
    seconds: NDArray,
    overflowing: NDArray,
) -> None:
    """Fuse and time each configuration.

    Args:
      configs: `(b, d)` int8.
      settings: `(b, n, 9)` int8, set for the kernel of each node (see `kernel_settings.override`), or `(b, 0, 9)`
        if the compiler sets everything.
      machine: `Machine.array()`, which times kernels; it must not change while `state` knows the last candidate.
      analytical: the machine for which tiles are chosen.
      state: of the last candidate, written.
      seconds: `(b,)`, filled with the program's run times; inf if the settings make the windows of a kernel overflow.
      overflowing: `(b,)`, filled with the first node of such a kernel, or -1.
    """
    flips, tuned = np.empty(1 + len(state.config) // FEW, np.int64), settings.shape[1] > 0
    for b in range(len(configs)):
        known = state.counter[Counter.KNOWN] == (Known.TUNED if tuned else Known.PLAIN)
        changes = _differences(configs[b], state.config, flips) if known else -1
        whole = not _fuse(configs[b], flips[: max(changes, 0)], changes >= 0, graph, inputs, state)
        if tuned:
            _take_settings(settings[b].reshape(-1), state)
        time_kernels(whole, tuned, graph, machine, analytical, state)
        state.counter[Counter.KNOWN] = Known.TUNED if tuned else Known.PLAIN
        seconds[b], overflowing[b] = state.sums[1] / machine[Rate.HERTZ], first_overflow(state)


@compiled(runtime=False)
def _fuse(
    config: NDArray, columns: NDArray, known: bool, graph: FusionGraph, inputs: IncomingEdges, state: FusionState
) -> bool:
    """Fuse as a `(d,)` configuration says; return False if all kernels may have changed, and not only touched ones.

    If the last candidate is known, `columns` are those in which it differs.
    """
    if known and update(config, columns, graph, inputs, state):
        return True
    for column in range(len(config)):
        state.config[column] = config[column]
    sweep(graph, state)
    return False


@compiled(runtime=False)
def fuse_again(
    columns: NDArray, proposed: NDArray, graph: FusionGraph, inputs: IncomingEdges, state: FusionState
) -> bool:
    """Fuse as `(d,)` proposed, where some columns are new; touch what changes, or return False if that may be all."""
    known, few = state.counter[Counter.KNOWN] == Known.PLAIN, FEW * len(columns) <= len(proposed)
    updated = _fuse(proposed, columns, known and few, graph, inputs, state)
    state.counter[Counter.KNOWN] = Known.PLAIN
    return updated


@compiled(runtime=False)
def _differences(new: NDArray, old: NDArray, found: NDArray) -> int:
    """Write the places where two rows differ and return their number, or -1 if `found` is too short for all of them."""
    count, i = 0, _next_difference(new, old, 0)
    while i < len(new):
        if count == len(found):
            return -1
        found[count] = i
        count, i = count + 1, _next_difference(new, old, i + 1)
    return count


@compiled(runtime=False)
def _next_difference(new: NDArray, old: NDArray, i: int) -> int:
    """Return the first place from i on at which two rows differ, or their length."""
    while i < len(new):
        if i % _BLOCK == 0 and i + _BLOCK <= len(new) and _same_block(new[i : i + _BLOCK], old[i : i + _BLOCK]):
            i += _BLOCK
        elif new[i] != old[i]:
            return i
        else:
            i += 1
    return i


@compiled(runtime=False)
def _same_block(new: NDArray, old: NDArray) -> bool:
    """True if two blocks are equal. The loop has no early exit, so it is vectorised: 30 times faster."""
    different = np.int8(0)
    for i in range(_BLOCK):
        different |= new[i] ^ old[i]
    return different == 0


@compiled(runtime=False)
def _take_settings(settings: NDArray, state: FusionState) -> None:
    """Store the settings of kernels, and touch the kernels whose settings have changed."""
    old = state.settings.reshape(-1)
    i, width = _next_difference(settings, old, 0), state.settings.shape[1]
    while i < len(settings):
        v = i // width
        for slot in range(v * width, (v + 1) * width):
            old[slot] = settings[slot]
        if is_kernel(v, state):
            state.touched[state.counter[Counter.TOUCHED]] = v
            state.counter[Counter.TOUCHED] += 1
        i = _next_difference(settings, old, (v + 1) * width)
