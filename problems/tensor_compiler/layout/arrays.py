"""A program before and after the layout pass as the few packed arrays that compiled code reads."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..graph.graph import ProgramGraph


class GraphEdge(IntEnum):
    """Columns of `GraphArrays.edge`."""

    CONSUMER = 0
    PLACE = 1  # at which the consumer takes the producer
    READ = 2  # of `Read`


class GraphArrays(NamedTuple):
    """The arrays of a `ProgramGraph`.

    Attributes:
      edge: `(m, 3)` with the columns of `GraphEdge`.
    """

    kind: NDArray[np.int64]
    signature: NDArray[np.int64]
    renamed: NDArray[np.int64]
    output: NDArray[np.bool_]
    starts: NDArray[np.int64]
    edge: NDArray[np.int64]


def graph_arrays(graph: ProgramGraph) -> GraphArrays:
    """Return the arrays of a graph."""
    kind, signature, renamed = (array.astype(np.int64) for array in (graph.kind, graph.signature, graph.renamed))
    edge = np.column_stack([graph.users, graph.operand, graph.read]).astype(np.int64)
    return GraphArrays(kind, signature, renamed, graph.output, graph.user_starts, edge)


class Place(IntEnum):
    """Bits of the places of work in a kernel (see `Kernel`), and of how an edge is computed."""

    LOOP = 1
    LEFT = 2
    RIGHT = 4
    ALIGNED = 8  # element by element all the way to the result
    SHUFFLED = 16  # not in the order in which the kernel's loop walks


# Few arrays with rows that are used together make the sweep fast.
class Node(IntEnum):
    """Columns of `FusionGraph.node`."""

    ELEMENTS = 0
    BYTES = 1  # written
    WORK = 2  # vector operations
    RUNS = 3
    ELEMENT_BYTES = 4
    EARLY = 5  # 1 if it is in memory before the program, or its loop, runs


class Edge(IntEnum):
    """Columns of `FusionGraph.edge`."""

    CONSUMER = 0
    DECISION = 1  # column of the configuration that decides the edge, or -1
    PLACE = 2  # place of work in front of a matrix product, or 0
    ORDER = 3  # `Place.ALIGNED` if the edge goes element by element, 0 if a reduction combines all, or `Place.SHUFFLED`


class Flow(IntEnum):
    """Columns of `FusionGraph.flow`."""

    READ = 0  # bytes read if the data goes through memory
    REUSE = 1  # uses of each element


class FusionGraph(NamedTuple):
    """What the fusion pass reads of a laid-out program of n nodes and m edges.

    Attributes:
      kind: `(n,)` of `Kind`.
      output: `(n,)` True if the result must be in memory.
      node: `(n, 6)` with the columns of `Node`.
      row: `(n,)` row of `loops` and `tiles` for a kernel around each node.
      loops: `(r, 8)` groups, rows, columns, depth and taps of a matrix product, or zeros; outer, rows and columns of a
        loop.
      tiles: `(r, 4, 3)` the default tiles that a kernel can have.
      starts: `(n + 1,)`; v's edges to its consumers are `starts[v]:starts[v + 1]`.
      edge: `(m, 4)` with the columns of `Edge`.
      flow: `(m, 2)` with the columns of `Flow`.
    """

    kind: NDArray[np.int64]
    output: NDArray[np.bool_]
    node: NDArray[np.float64]
    row: NDArray[np.int64]
    loops: NDArray[np.float64]
    tiles: NDArray[np.float64]
    starts: NDArray[np.int64]
    edge: NDArray[np.int64]
    flow: NDArray[np.float64]
