"""The kernels that fusion decisions make, as parts: what each is, without its cost, whole or step by step."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, handle, load, name_of_type
from bbo_suite.parts.cursor import CHANGE, DESCRIBE, KEY, Cursor, Function
from bbo_suite.parts.decomposition import Decomposition, Description

from ..fusion.evaluation import fuse_again
from ..fusion.fusion_pass import Fusion
from ..fusion.guests import is_kernel, kernels_of
from ..fusion.incremental import IncomingEdges
from ..fusion.kernels import describe_kernel, estimated_cycles, row_key
from ..fusion.state import Counter, FusionState
from ..hardware.kernel_row import KERNEL_WIDTH, Kernel
from ..hardware.machine import Rate
from ..layout.arrays import FusionGraph, Node

compiled = compiled_for(__file__)


FEATURES = (*(column.name.lower() for column in Kernel), "estimate")


class FusionDecomposition(Decomposition):
    """The kernels of a laid-out program under fusion decisions.

    The features of a kernel are what its timing depends on, and the seconds that the compiler's own model estimates.

    Args:
      fusion: not used for anything else, since it remembers the last candidate.
    """

    feature_names = FEATURES
    estimate = len(FEATURES) - 1

    def __init__(self, fusion: Fusion) -> None:
        self._fusion = fusion

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        fusion = self._fusion
        proposed = np.zeros(len(fusion.columns), np.int8)
        return proposed, fusion.arrays, fusion.inputs, fusion.analytical, fusion.state

    @cached_property
    def _functions(self) -> tuple[Function, Function, Function]:
        kind = name_of_type(self._arrays)

        @compiled.callback(CHANGE)
        def set_parameters(address: int, columns: NDArray, values: NDArray, touched: NDArray) -> int:
            proposed, graph, inputs, _, state = load(address, kind)
            return _change(columns, values, proposed, graph, inputs, state, touched)

        @compiled.callback(KEY)
        def read_key(address: int, place: int, key: NDArray) -> float:
            _, graph, _, _, state = load(address, kind)
            if not is_kernel(place, state):
                return 0.0
            describe_kernel(place, graph, state)
            key[0] = row_key(state.kernel)
            return graph.node[place, Node.RUNS]

        @compiled.callback(DESCRIBE)
        def read_features(address: int, place: int, features: NDArray) -> None:
            _, graph, _, analytical, state = load(address, kind)
            read_kernel(place, graph, analytical, state, features)

        return Function(set_parameters, CHANGE), Function(read_key, KEY), Function(read_features, DESCRIBE)

    def cursor(self, config: NDArray) -> Cursor:
        """Return a cursor at a `(d,)` candidate."""
        memory, places = handle(self._arrays), len(self._fusion.arrays.kind)
        cursor = Cursor(*self._functions, memory, places, len(FEATURES), self)
        cursor.set(np.arange(len(config)), config)
        return cursor

    def describe(self, configs: NDArray) -> Description:
        """Return the kernels of `(n, d)` candidates."""
        proposed, graph, inputs, analytical, state = self._arrays
        starts, keys, counts, features = [0], [], [], []
        for config in configs:
            _go_to(np.ascontiguousarray(config, np.int8), proposed, graph, inputs, state)
            places = kernels_of(state)
            keys.append(np.empty(len(places), np.uint64))
            features.append(np.empty((len(places), len(FEATURES))))
            _read_all(places, graph, analytical, state, keys[-1], features[-1])
            counts.append(graph.node[places, Node.RUNS])
            starts.append(starts[-1] + len(places))
        return Description(np.array(starts), np.concatenate(keys), np.concatenate(counts), np.concatenate(features))


@compiled()
def _read_all(
    places: NDArray, graph: FusionGraph, analytical: NDArray, state: FusionState, keys: NDArray, features: NDArray
) -> None:
    for i in range(len(places)):
        keys[i] = read_kernel(places[i], graph, analytical, state, features[i])


@compiled(runtime=False)
def read_kernel(v: int, graph: FusionGraph, analytical: NDArray, state: FusionState, features: NDArray) -> np.uint64:
    """Write the features of the kernel of v and return its key."""
    cycles = estimated_cycles(v, graph, analytical, state)  # describes the kernel, too
    for column in range(KERNEL_WIDTH):
        features[column] = state.kernel[column]
    features[KERNEL_WIDTH] = cycles / analytical[Rate.HERTZ]
    return row_key(state.kernel)


@compiled()
def _go_to(config: NDArray, proposed: NDArray, graph: FusionGraph, inputs: IncomingEdges, state: FusionState) -> None:
    """Set all parameters."""
    columns = np.flatnonzero(config != proposed)
    _change(columns, config[columns], proposed, graph, inputs, state, state.touched)


@compiled(runtime=False)
def _change(
    columns: NDArray,
    values: NDArray,
    proposed: NDArray,
    graph: FusionGraph,
    inputs: IncomingEdges,
    state: FusionState,
    touched: NDArray,
) -> int:
    """Set parameters; write the places that may have changed and return their number, or -1 for any place."""
    for i in range(len(columns)):
        proposed[columns[i]] = values[i]
    if not fuse_again(columns, proposed, graph, inputs, state):
        return -1
    count = state.counter[Counter.TOUCHED]
    if count > len(touched):
        return -1
    for i in range(count):
        touched[i] = state.touched[i]
    return count
