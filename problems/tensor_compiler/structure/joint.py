"""The kernels that decisions of all passes make, as parts: with their tiles and flags, and with copies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, handle, load, name_of_type
from bbo_suite.parts.cursor import CHANGE, DESCRIBE, Cursor, Function

from ..fusion.evaluation import fuse_again
from ..fusion.guests import is_kernel
from ..fusion.incremental import IncomingEdges, connect, new_inputs
from ..fusion.kernels import describe_kernel, estimated_cycles, tuned_key
from ..fusion.state import Counter, FusionState, Known, same
from ..hardware.kernel_row import DEFAULT_FLAGS, KERNEL_WIDTH, Flag, Kernel
from ..hardware.kernel_settings import FLAG_SLOTS, SLOTS, TILE_SLOTS, override
from ..hardware.machine import Machine, Rate
from ..hardware.timing import kernel_cycles
from ..layout.arrays import FusionGraph
from ..layout.layout_pass import LayoutPass, Source, first_nodes, lay_out
from ..passes import FlatRow
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

compiled = compiled_for(__file__)


FEATURES = (*(column.name.lower() for column in Kernel), *SLOTS, "fits", "estimate")

TILES, FLAGS = len(TILE_SLOTS), len(FLAG_SLOTS)
_PENALTY = 100.0
"""Factor on the estimate of a kernel whose windows do not fit, which must be finite."""


class Side(NamedTuple):
    """What the compiler makes of the layouts and the fusion of a candidate, and the edges of its graph."""

    made: Compiled
    inputs: IncomingEdges


class Candidate(NamedTuple):
    """What the functions of a cursor read: a candidate, and what is known of it.

    Attributes:
      config: `(d,)` of the candidate.
      starts: `(3,)` the first columns of fusion, tile and flags.
      roots: `(r,)` the places with tiles and flags.
      root: `(n,)` the number of each node among these, or -1.
      changed: `(d,)` memory for changed columns.
      handles: `(2,)` of `Side`: of this layout and of the one before.
      keys: `(places,)` as in `CursorDecomposition`.
      unlimited: the machine of the analytical model with a scratchpad for any windows.
    """

    config: NDArray[np.int64]
    starts: NDArray[np.int64]
    roots: NDArray[np.int64]
    root: NDArray[np.int64]
    changed: NDArray[np.int64]
    handles: NDArray[np.int64]
    keys: NDArray[np.uint64]
    source: Source
    analytical: NDArray[np.float64]
    unlimited: NDArray[np.float64]
    places: Places


class JointDecomposition(CursorDecomposition):
    """The kernels of a program under decisions of all passes.

    The features of a kernel are what its timing depends on, its tile and flags, whether its windows fit into the
    scratchpad, and the seconds that the compiler's own model estimates. A change of layouts lays the whole program out
    again; the layouts before stay in memory, so that the last change is taken back quickly.
    """

    feature_names = FEATURES
    estimate = len(FEATURES) - 1

    def __init__(self, layout: LayoutPass, flat: FlatRow, machine: Machine) -> None:
        self._layout, self._flat, self._analytical = layout, flat, machine.analytical_model().array()
        self._places = places_of(layout.graph)
        self.runs, self.keys = self._places.runs, np.zeros(len(self._places.runs), np.uint64)

    def new_cursor(self) -> Cursor:
        """Return the cursor, at no candidate."""
        sides = [self._side() for _ in range(2)]
        memories = [handle(side) for side in sides]
        d, unlimited = len(self._flat.sizes), self._analytical.copy()
        unlimited[Rate.SCRATCHPAD] = np.inf
        arrays = Candidate(
            config=np.zeros(d, np.int64),
            starts=np.array([self._flat.span[name].start for name in ("fusion", "tile", "flags")]),
            roots=self._flat.roots,
            root=self._flat.place(np.arange(len(self._layout.graph))),
            changed=np.zeros(d, np.int64),
            handles=np.array([memory.ctypes.data for memory in memories]),
            keys=self.keys,
            source=self._layout.source,
            analytical=self._analytical,
            unlimited=unlimited,
            places=self._places,
        )
        functions = _functions(name_of_type(arrays), name_of_type(sides[0]))
        memory, owner, layouts = handle(arrays), (self, arrays, sides, memories), range(arrays.starts[0])
        return Cursor(*functions, memory, len(self.runs), len(FEATURES), owner, layouts)

    def _side(self) -> Side:
        d = len(self._layout.fused) + len(self._layout.copied)
        made = new_compiled(self._layout, self._places, d)
        return Side(made, new_inputs(len(made.target.arrays.kind), len(made.target.arrays.edge), d))


def _functions(cursor_type: str, side_type: str) -> tuple[Function, Function, Function]:
    """Return the functions of a cursor."""

    @compiled.callback(CHANGE)
    def _set_parameters(address: int, columns: NDArray, values: NDArray, touched: NDArray) -> int:
        cursor, count = load(address, cursor_type), 0
        now, before = load(cursor.handles[0], side_type), load(cursor.handles[1], side_type)
        flips, tuned, relaid = set_columns(columns, values, cursor)
        if relaid or now.made.numbering.size[0] == 0:
            cursor.handles[0], cursor.handles[1] = cursor.handles[1], cursor.handles[0]
            return reported(lay_out_again(cursor, before, touched), touched)
        if flips and not fuse(flips, cursor, now):
            return reported(compare(cursor, now.made, touched), touched)
        if flips:
            for i in range(now.made.state.counter[Counter.TOUCHED]):
                place = now.made.numbering.place[now.made.state.touched[i]]
                count = report(place, key_of(place, cursor, now.made), cursor.keys, touched, count)
        for i in range(tuned):
            place = cursor.changed[len(cursor.changed) - 1 - i]
            count = report(place, key_of(place, cursor, now.made), cursor.keys, touched, count)
        return reported(count, touched)

    @compiled.callback(DESCRIBE)
    def _read_features(address: int, place: int, features: NDArray) -> None:
        cursor = load(address, cursor_type)
        made = load(cursor.handles[0], side_type).made
        i = made.numbering.node[place]
        take_settings(place, i, cursor, made)
        read_tuned_kernel(i, made.target.arrays, cursor.analytical, cursor.unlimited, made.state, features)

    return Function(_set_parameters, CHANGE), key_reader(cursor_type), Function(_read_features, DESCRIBE)


@compiled(runtime=False)
def set_columns(columns: NDArray, values: NDArray, cursor: Candidate) -> tuple[int, int, bool]:
    """Set parameters; return the number of changed decisions of fusion, that of settings, and whether layouts changed.

    The former are written to the front of `cursor.changed`, the places of the settings to its end.
    """
    flips, tuned, relaid = 0, 0, False
    for i in range(len(columns)):
        column = columns[i]
        if cursor.config[column] == values[i]:
            continue
        cursor.config[column] = values[i]
        if column < cursor.starts[0] or flips + tuned == len(cursor.changed):
            relaid = True
        elif column < cursor.starts[1]:
            cursor.changed[flips] = column - cursor.starts[0]
            flips += 1
        else:
            tuned += 1
            first, width = (cursor.starts[2], FLAGS) if column >= cursor.starts[2] else (cursor.starts[1], TILES)
            cursor.changed[len(cursor.changed) - tuned] = cursor.roots[(column - first) // width]
    return flips, tuned, relaid


@compiled(runtime=False)
def fuse(flips: int, cursor: Candidate, side: Side) -> bool:
    """Fuse again after the first `flips` of `cursor.changed`; return False if all kernels may have changed."""
    graph = first_nodes(side.made.numbering.size[0], side.made.target.arrays)
    fused = cursor.config[cursor.starts[0] : cursor.starts[1]]
    return fuse_again(cursor.changed[:flips], fused, graph, side.inputs, side.made.state)


@compiled()
def lay_out_again(cursor: Candidate, side: Side, touched: NDArray) -> int:
    """Compile the candidate from the layouts on, or from its fusion if the layouts are known; return as `_compare`."""
    made, layouts = side.made, cursor.config[: cursor.starts[0]]
    if made.numbering.size[0] == 0 or not same(made.layouts, layouts):
        made.layouts[:] = layouts
        n = lay_out(layouts, cursor.source, made.target)
        number_places(n, made.target.plan, cursor.places, made.numbering)
        connect(first_nodes(n, made.target.arrays), side.inputs)
        made.state.counter[Counter.KNOWN] = Known.NOTHING
    flips = 0
    for column in range(len(made.state.config)):
        if made.state.config[column] != cursor.config[cursor.starts[0] + column]:
            cursor.changed[flips] = column
            flips += 1
    fuse(flips, cursor, side)
    return compare(cursor, made, touched)


@compiled()
def compare(cursor: Candidate, made: Compiled, touched: NDArray) -> int:
    """Keep the keys of all kernels; write the places where they are new, and return how many these are."""
    count = 0
    for place in range(len(cursor.keys)):
        count = report(place, key_of(place, cursor, made), cursor.keys, touched, count)
    return count


@compiled(runtime=False)
def key_of(place: int, cursor: Candidate, made: Compiled) -> np.uint64:
    """Return the key of the kernel at a place, 0 if there is none."""
    i = made.numbering.node[place]
    if i < 0 or not is_kernel(i, made.state):
        return np.uint64(0)
    describe_kernel(i, made.target.arrays, made.state)
    take_settings(place, i, cursor, made)
    return tuned_key(made.state.settings[i], made.state.kernel)


@compiled(runtime=False)
def take_settings(place: int, i: int, cursor: Candidate, made: Compiled) -> None:
    """Write the tile and the flags of the kernel of node i, which is at a place."""
    root, settings = cursor.root[place] if place < len(cursor.root) else -1, made.state.settings[i]
    for slot in range(TILES):
        settings[slot] = cursor.config[cursor.starts[1] + root * TILES + slot] if root >= 0 else 0
    for slot in range(FLAGS):
        settings[TILES + slot] = cursor.config[cursor.starts[2] + root * FLAGS + slot] if root >= 0 else 0


@compiled(runtime=False)
def read_tuned_kernel(
    v: int, graph: FusionGraph, analytical: NDArray, unlimited: NDArray, state: FusionState, features: NDArray
) -> None:
    """Write the `FEATURES` of the kernel of v with `state.settings`.

    Args:
      v: a node that has a kernel.
      graph: the laid-out program.
      analytical: the machine of the analytical model.
      unlimited: the same with a scratchpad for any windows, for the estimate if they do not fit.
      state: the kernels.
      features: written.
    """
    cycles = estimated_cycles(v, graph, analytical, state)
    kernel, tile, flags = state.kernel, state.tile, state.flags
    if state.settings[v].any() and kernel_cycles(analytical, kernel, tile, flags) < np.inf:  # else settings are ignored
        override(state.settings[v], kernel, tile, flags)
        cycles = kernel_cycles(analytical, kernel, tile, flags)
    fits = cycles < np.inf
    if not fits:
        cycles = _PENALTY * kernel_cycles(unlimited, kernel, tile, flags)
    if kernel[Kernel.GROUPS] == 0:
        flags[Flag.ORDER] = 0.0  # it is of another kernel
    for column in range(KERNEL_WIDTH):
        features[column] = kernel[column]
    for axis in range(TILES):
        features[KERNEL_WIDTH + axis] = tile[axis]
    for flag in range(FLAGS):
        features[KERNEL_WIDTH + TILES + flag] = flags[flag]
        flags[flag] = DEFAULT_FLAGS[flag]
    features[-2], features[-1] = 1.0 if fits else 0.0, cycles / analytical[Rate.HERTZ]
