"""A candidate of the joint task that compiled code follows: what is compiled, and the keys of its kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..fusion.columns import Counter, Known, Tally
from ..fusion.decomposition import fuse_again
from ..fusion.kernel_keys import tuned_key
from ..fusion.kernel_timing import describe_kernel
from ..fusion.kernel_totals import IncomingEdges, connect
from ..hardware.kernel_settings import FLAG_SLOTS, TILE_SLOTS
from ..layout.in_place import Source, first_nodes, lay_out
from .compiled_layout import Compiled, same
from .followed import report
from .places import Places, number_places

compiled = compiled_for(__file__)

TILES, FLAGS = len(TILE_SLOTS), len(FLAG_SLOTS)


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
      changed: `(d,)` room for changed columns.
      handles: `(2,)` of `Side`: of this layout and of the one before.
      keys: `(places,)` as in `FollowedDecomposition`.
      unlimited: the machine on paper with a scratchpad for any windows.
    """

    config: NDArray[np.int64]
    starts: NDArray[np.int64]
    roots: NDArray[np.int64]
    root: NDArray[np.int64]
    changed: NDArray[np.int64]
    handles: NDArray[np.int64]
    keys: NDArray[np.uint64]
    source: Source
    paper: NDArray[np.float64]
    unlimited: NDArray[np.float64]
    places: Places


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
    if i < 0 or made.state.tally[i, Tally.FUSED] == 0:
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
