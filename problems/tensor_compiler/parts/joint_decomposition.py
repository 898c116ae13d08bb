"""The kernels that decisions of all passes make, as parts: with their tiles and flags, and with copies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, handle, load, name_of_type
from bbo_suite.parts.cursor import CHANGE, DESCRIBE, Cursor, Function

from ..fusion.columns import Counter
from ..fusion.kernel_totals import new_inputs
from ..hardware.machine import Machine, Rate
from ..joint.flat_row import FlatRow
from ..layout.layout_pass import LayoutPass
from .compiled_layout import new_compiled
from .followed import FollowedDecomposition, key_reader, report, reported
from .joint_candidate import Candidate, Side, compare, fuse, key_of, lay_out_again, set_columns, take_settings
from .places import places_of
from .tuned_kernel import FEATURES, read_tuned_kernel

compiled = compiled_for(__file__)


class JointDecomposition(FollowedDecomposition):
    """The kernels of a program under decisions of all passes.

    The features of a kernel are what its timing depends on, its tile and flags, whether its windows fit into the
    scratchpad, and the seconds that the compiler's own model estimates. A change of layouts lays the whole program out
    again; the layouts before are kept, so that the last change is taken back quickly.
    """

    feature_names = FEATURES
    estimate = len(FEATURES) - 1

    def __init__(self, layout: LayoutPass, flat: FlatRow, machine: Machine) -> None:
        self._layout, self._flat, self._paper = layout, flat, machine.on_paper().array()
        self._places = places_of(layout.graph)
        self.runs, self.keys = self._places.runs, np.zeros(len(self._places.runs), np.uint64)

    def new_cursor(self) -> Cursor:
        """Return the cursor, at no candidate."""
        sides = [self._side() for _ in range(2)]
        memories = [handle(side) for side in sides]
        d, unlimited = len(self._flat.sizes), self._paper.copy()
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
            paper=self._paper,
            unlimited=unlimited,
            places=self._places,
        )
        functions = _functions(name_of_type(arrays), name_of_type(sides[0]))
        return Cursor(*functions, handle(arrays), len(self.runs), len(FEATURES), (self, arrays, sides, memories))

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
        read_tuned_kernel(i, made.target.arrays, cursor.paper, cursor.unlimited, made.state, features)

    return Function(_set_parameters, CHANGE), key_reader(cursor_type), Function(_read_features, DESCRIBE)
