"""What decompositions of candidates with layouts share: places of kernels, memory, and the keys of all parts."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for, load
from bbo_suite.parts.cursor import KEY, Cursor, Function
from bbo_suite.parts.decomposition import Decomposition, Description

from ..fusion.state import FusionState, new_state
from ..graph.graph import ProgramGraph
from ..layout.laid_out import Plan
from ..layout.layout_pass import LayoutPass, Target, new_target

compiled = compiled_for(__file__)


class Places(NamedTuple):
    """The places of a program of n nodes: v is that of node v, `copies[u] + l` that of u's copy in layout l.

    Attributes:
      copies: `(n,)` int64.
      runs: `(places,)` float64, how often the kernel at a place runs.
    """

    copies: NDArray[np.int64]
    runs: NDArray[np.float64]


class Numbering(NamedTuple):
    """Which node of a laid-out program is at which place.

    Attributes:
      node: `(places,)` the node at each place, or -1.
      place: of each node; long enough for any layout.
      size: `(1,)` the number of nodes, 0 if nothing is laid out yet.
    """

    node: NDArray[np.int64]
    place: NDArray[np.int64]
    size: NDArray[np.int64]


class Compiled(NamedTuple):
    """A candidate and what the compiler makes of it.

    Attributes:
      layouts: `(p,)` the choices of layouts.
      target: the laid-out program.
      state: its kernels.
      numbering: of its nodes.
    """

    layouts: NDArray[np.int64]
    target: Target
    state: FusionState
    numbering: Numbering


class CursorDecomposition(Decomposition):
    """Parts at places, described by moving a cursor that remembers their keys; a subclass makes the cursor.

    Attributes:
      keys: `(places,)` uint64, those of the last candidate, 0 where there is no part.
      runs: `(places,)` counts of parts.
    """

    keys: NDArray[np.uint64]
    runs: NDArray[np.float64]

    @abstractmethod
    def new_cursor(self) -> Cursor:
        """Return the cursor, at any candidate."""

    @cached_property
    def _cursor(self) -> Cursor:
        return self.new_cursor()

    def cursor(self, config: NDArray) -> Cursor:
        """Return a cursor at a `(d,)` candidate."""
        self._cursor.set(np.arange(len(config)), config)
        return self._cursor

    def describe(self, configs: NDArray) -> Description:
        """Return the kernels of `(n, d)` candidates."""
        starts, keys, counts, features = [0], [], [], []
        for config in configs:
            cursor = self.cursor(config)
            places = np.flatnonzero(self.keys)
            keys.append(self.keys[places])
            counts.append(self.runs[places])
            features.append(np.empty((len(places), len(self.feature_names))))
            _read(cursor.describe, cursor.handle, places, features[-1])
            starts.append(starts[-1] + len(places))
        return Description(np.array(starts), np.concatenate(keys), np.concatenate(counts), np.concatenate(features))


def places_of(graph: ProgramGraph) -> Places:
    """Return the places of a program; nodes whose results have a single layout are not copied."""
    tables, n = graph.tables, len(graph)
    layouts = np.where(tables.same_minor > 0, tables.layouts, 0)[graph.signature]
    copies = n + np.cumsum(layouts) - layouts
    return Places(copies.astype(np.int64), np.concatenate([graph.weight, np.repeat(graph.weight, layouts)]))


def new_numbering(places: Places, most: int) -> Numbering:
    """Return memory for the numbers of at most `most` nodes."""
    return Numbering(np.full(len(places.runs), -1), np.empty(most, np.int64), np.zeros(1, np.int64))


@compiled(runtime=False)
def number_places(n: int, plan: Plan, places: Places, numbering: Numbering) -> None:
    """Write the numbers of the n nodes of a plan."""
    numbering.node[:], numbering.size[0] = -1, n
    for i in range(n):
        v = plan.origin[i]
        place = v if v >= 0 else places.copies[-1 - v] + plan.layout[i]
        numbering.place[i], numbering.node[place] = place, i


def new_compiled(layout: LayoutPass, places: Places, d: int) -> Compiled:
    """Return memory for what the compiler makes of a candidate with `d` decisions of fusion."""
    target = new_target(layout.graph, layout.source)
    most = len(target.plan.whole)
    return Compiled(np.full(len(layout.nodes), -1), target, new_state(most, d), new_numbering(places, most))


@compiled()
def _read(describe: Any, handle: int, places: NDArray, features: NDArray) -> None:  # noqa: ANN401
    for i in range(len(places)):
        describe(handle, places[i], features[i])


def key_reader(cursor_type: str) -> Function:
    """Return the function that reads the key of a part, of cursors with `keys` and `places` (see `KEY`)."""

    @compiled.callback(KEY)
    def _read_key(address: int, place: int, key: NDArray) -> float:
        cursor = load(address, cursor_type)
        key[0] = cursor.keys[place]
        return cursor.places.runs[place] if key[0] != 0 else 0.0

    return Function(_read_key, KEY)


@compiled(runtime=False)
def report(place: int, key: np.uint64, keys: NDArray, touched: NDArray, count: int) -> int:
    """Keep the key of the part at a place; if it is new, the place joins the `count` touched ones. Return their number.

    Places that do not fit into `touched` are only counted.
    """
    if keys[place] == key:
        return count
    keys[place] = key
    if count < len(touched):
        touched[count] = place
    return count + 1


@compiled(runtime=False)
def reported(count: int, touched: NDArray) -> int:
    """Return the result of a change (see `CHANGE`) that touched so many places."""
    return count if count <= len(touched) else -1
