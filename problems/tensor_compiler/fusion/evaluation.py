"""What candidates of the fusion pass cost: each is updated from the one before it, or swept where too much differs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..hardware.machine import Rate
from ..layout.arrays import FusionGraph
from .incremental import update
from .kernel_timing import first_overflow, time_kernels
from .kernel_totals import IncomingEdges
from .state import Counter, FusionState, Known, Tally
from .sweep import sweep

_FEW = 32
"""Where more than one column in so many differs, a sweep is about as fast as an update."""
_BLOCK = 64


@compiled()
def evaluate(
    configs: NDArray,
    settings: NDArray,
    graph: FusionGraph,
    inputs: IncomingEdges,
    machine: NDArray,
    paper: NDArray,
    state: FusionState,
    seconds: NDArray,
    overflowing: NDArray,
) -> None:
    """Fuse and time each configuration.

    Args:
      configs: `(b, d)` int8.
      settings: `(b, n, 9)` int8, set for the kernel of each node (see `kernel_choices.override`), or `(b, 0, 9)`
        where the compiler sets all.
      machine: `Machine.array()`, which times kernels; the same one as long as `state` knows the last candidate.
      paper: the one that tiles are chosen for.
      state: of the last candidate, written.
      seconds: `(b,)`, filled with the program's run times; inf where the windows of a kernel overflow as they are set.
      overflowing: `(b,)`, filled with the first node of such a kernel, or -1.
    """
    flips, tuned = np.empty(1 + len(state.config) // _FEW, np.int64), settings.shape[1] > 0
    for b in range(len(configs)):
        known = state.counter[Counter.KNOWN] == (Known.TUNED if tuned else Known.PLAIN)
        changes = _differences(configs[b], state.config, flips) if known else -1
        whole = changes < 0 or not update(configs[b], flips[:changes], graph, inputs, state)
        if whole:
            state.config[:] = configs[b]
            sweep(graph, state)
        if tuned:
            _take_settings(settings[b].reshape(-1), state)
        time_kernels(whole, tuned, graph, machine, paper, state)
        state.counter[Counter.KNOWN] = Known.TUNED if tuned else Known.PLAIN
        seconds[b], overflowing[b] = state.sums[1] / machine[Rate.HERTZ], first_overflow(state)


@compiled(runtime=False)
def _differences(new: NDArray, old: NDArray, found: NDArray) -> int:
    """Write where two rows differ, and return at how many places; -1 if these are more than there is room for."""
    count, i = 0, _next_difference(new, old, 0)
    while i < len(new):
        if count == len(found):
            return -1
        found[count] = i
        count, i = count + 1, _next_difference(new, old, i + 1)
    return count


@compiled(runtime=False)
def _next_difference(new: NDArray, old: NDArray, i: int) -> int:
    """Return the first place from i on where two rows differ, or their length."""
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
    """Are two blocks equal? Without a way out of the loop, so that vector instructions do it: 30 times faster."""
    different = np.int8(0)
    for i in range(_BLOCK):
        different |= new[i] ^ old[i]
    return different == 0


@compiled(runtime=False)
def _take_settings(settings: NDArray, state: FusionState) -> None:
    """Take over what is set for kernels, and touch those for which that has changed."""
    old = state.settings.reshape(-1)
    i, width = _next_difference(settings, old, 0), state.settings.shape[1]
    while i < len(settings):
        v = i // width
        for slot in range(v * width, (v + 1) * width):
            old[slot] = settings[slot]
        if state.tally[v, Tally.FUSED] > 0:
            state.touched[state.counter[Counter.TOUCHED]] = v
            state.counter[Counter.TOUCHED] += 1
        i = _next_difference(settings, old, (v + 1) * width)
