"""Keys of kernels: a hash of everything that the timing of a kernel depends on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.parts.handles import mix

from ..compiled import compiled
from ..layout.arrays import FusionGraph
from .kernel_timing import describe_kernel
from .state import FusionState


@compiled()
def kernel_keys(places: NDArray, graph: FusionGraph, state: FusionState, keys: NDArray) -> None:
    """Write the `(k,)` keys of the kernels of `(k,)` nodes."""
    for i in range(len(places)):
        describe_kernel(places[i], graph, state)
        keys[i] = row_key(state.kernel)


@compiled(runtime=False)
def row_key(kernel: NDArray) -> np.uint64:
    """Return the key of a `(KERNEL_WIDTH,)` kernel."""
    key, words = np.uint64(0), kernel.view(np.uint64)
    for i in range(len(words)):
        key = mix(key, words[i])
    return key
