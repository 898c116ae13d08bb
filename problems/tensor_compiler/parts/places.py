"""Places of kernels that stay the same in all layouts: one for each node of a program, and for each of its copies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..graph.graph import ProgramGraph
from ..layout.copies import Plan

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
      place: of each node; it has room for any layout.
      size: `(1,)` the number of nodes, 0 if nothing is laid out yet.
    """

    node: NDArray[np.int64]
    place: NDArray[np.int64]
    size: NDArray[np.int64]


def places_of(graph: ProgramGraph) -> Places:
    """Return the places of a program; nodes whose results have a single layout are not copied."""
    tables, n = graph.tables, len(graph)
    layouts = np.where(tables.same_minor > 0, tables.layouts, 0)[graph.signature]
    copies = n + np.cumsum(layouts) - layouts
    return Places(copies.astype(np.int64), np.concatenate([graph.weight, np.repeat(graph.weight, layouts)]))


def new_numbering(places: Places, most: int) -> Numbering:
    """Return room for the numbers of at most `most` nodes."""
    return Numbering(np.full(len(places.runs), -1), np.empty(most, np.int64), np.zeros(1, np.int64))


@compiled(runtime=False)
def number_places(n: int, plan: Plan, places: Places, numbering: Numbering) -> None:
    """Write the numbers of the n nodes of a plan."""
    numbering.node[:], numbering.size[0] = -1, n
    for i in range(n):
        v = plan.origin[i]
        place = v if v >= 0 else places.copies[-1 - v] + plan.layout[i]
        numbering.place[i], numbering.node[place] = place, i
