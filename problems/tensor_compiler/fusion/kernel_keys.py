"""Keys of kernels: a hash of everything that the timing of a kernel depends on, its settings included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, mix

from ..layout.arrays import FusionGraph
from .kernel_choices import effect
from .kernel_timing import describe_kernel
from .state import FusionState

compiled = compiled_for(__file__)


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
