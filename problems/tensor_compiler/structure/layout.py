"""The kernels and copies that layouts make under the default fusion, as parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, handle, load, name_of_type
from bbo_suite.parts.cursor import CHANGE, DESCRIBE, Cursor, Function

from ..fusion.default_fusion import PlanMemory, choose, new_plan_memory
from ..fusion.guests import is_kernel
from ..fusion.incremental import IncomingEdges, connect, new_inputs
from ..fusion.kernels import describe_kernel, row_key
from ..fusion.state import first_kernels, same
from ..hardware.machine import Machine
from ..layout.layout_pass import LayoutPass, Source, first_nodes, lay_out
from .base import (
    Compiled,
    CursorDecomposition,
    Places,
    key_reader,
    new_compiled,
    number_places,
    places_of,
    report,
    reported,
)
from .fusion import FEATURES, read_kernel

compiled = compiled_for(__file__)


class _Cursor(NamedTuple):
    """What the cursor's functions read.

    Attributes:
      layouts: `(p,)` of the candidate.
      handles: `(2,)` of `Compiled`: of this candidate and of the one before.
      keys: `(places,)` as in `CursorDecomposition`.
      inputs: edges of the graph that is compiled, only while it is.
    """

    layouts: NDArray[np.int64]
    handles: NDArray[np.int64]
    keys: NDArray[np.uint64]
    source: Source
    plans: PlanMemory
    inputs: IncomingEdges
    analytical: NDArray[np.float64]
    places: Places


class LayoutDecomposition(CursorDecomposition):
    """The kernels of a program under choices of layouts, with those of copies that are not fused.

    The features of a kernel are those of `FusionDecomposition`. A change lays the whole program out and fuses it
    again; what was compiled before stays in memory, so that the last change is taken back quickly.
    """

    feature_names = FEATURES
    estimate = len(FEATURES) - 1

    def __init__(self, layout: LayoutPass, machine: Machine) -> None:
        self._layout, self._analytical, self._places = (
            layout,
            machine.analytical_model().array(),
            places_of(layout.graph),
        )
        self.runs, self.keys = self._places.runs, np.zeros(len(self._places.runs), np.uint64)

    def new_cursor(self) -> Cursor:
        """Return the cursor, at no candidate."""
        d = len(self._layout.fused) + len(self._layout.copied)
        sides = [new_compiled(self._layout, self._places, d) for _ in range(2)]
        memories = [handle(side) for side in sides]
        handles = np.array([memory.ctypes.data for memory in memories])
        most, edges = len(sides[0].target.plan.whole), len(sides[0].target.arrays.edge)
        arrays = _Cursor(
            np.zeros(len(self._layout.nodes), np.int64),
            handles,
            self.keys,
            self._layout.source,
            new_plan_memory(most, d),
            new_inputs(most, edges, d),
            self._analytical,
            self._places,
        )
        functions = _functions(name_of_type(arrays), name_of_type(sides[0]))
        memory, owner = handle(arrays), (self, arrays, sides, memories)
        return Cursor(*functions, memory, len(self.runs), len(FEATURES), owner, range(len(self._layout.nodes)))


def _functions(cursor_type: str, compiled_type: str) -> tuple[Function, Function, Function]:
    """Return the functions of a cursor."""

    @compiled.callback(CHANGE)
    def _set_parameters(address: int, columns: NDArray, values: NDArray, touched: NDArray) -> int:
        cursor = load(address, cursor_type)
        for i in range(len(columns)):
            cursor.layouts[columns[i]] = values[i]
        now, before = load(cursor.handles[0], compiled_type), load(cursor.handles[1], compiled_type)
        if same(now.layouts, cursor.layouts):
            return 0
        cursor.handles[0], cursor.handles[1] = cursor.handles[1], cursor.handles[0]
        if not same(before.layouts, cursor.layouts):
            _compile(cursor, before)
        return reported(_compare(before, cursor.keys, touched), touched)

    @compiled.callback(DESCRIBE)
    def _read_features(address: int, place: int, features: NDArray) -> None:
        cursor = load(address, cursor_type)
        now = load(cursor.handles[0], compiled_type)
        read_kernel(now.numbering.node[place], now.target.arrays, cursor.analytical, now.state, features)

    return Function(_set_parameters, CHANGE), key_reader(cursor_type), Function(_read_features, DESCRIBE)


@compiled()
def _compile(cursor: _Cursor, made: Compiled) -> None:
    """Lay the program out and fuse it as the compiler does on its own."""
    made.layouts[:] = cursor.layouts
    n = lay_out(cursor.layouts, cursor.source, made.target)
    number_places(n, made.target.plan, cursor.places, made.numbering)
    graph = first_nodes(n, made.target.arrays)
    connect(graph, cursor.inputs)
    choose(graph, cursor.inputs, cursor.analytical, cursor.plans, first_kernels(n, made.state))


@compiled()
def _compare(made: Compiled, keys: NDArray, touched: NDArray) -> int:
    """Keep the keys of all kernels; write the places where they are new, and return how many these are."""
    count, none = 0, np.uint64(0)
    for place in range(len(keys)):
        i, key = made.numbering.node[place], none
        if i >= 0 and is_kernel(i, made.state):
            describe_kernel(i, made.target.arrays, made.state)
            key = row_key(made.state.kernel)
        count = report(place, key, keys, touched, count)
    return count
