"""A laid-out program as the few packed arrays that the fusion pass reads, and what it costs to compute its nodes."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..hlo.opcodes import Kind

compiled = compiled_for(__file__)


class Place(IntEnum):
    """Bits of the places of work in a kernel (see `Kernel`), and of how an edge is computed."""

    LOOP = 1
    LEFT = 2
    RIGHT = 4
    ALIGNED = 8  # element by element all the way to the result


# Few arrays with rows that are used together make the sweep fast.
class Node(IntEnum):
    """Columns of `FusionGraph.node`."""

    ELEMENTS = 0
    BYTES = 1  # written
    WORK = 2  # vector operations
    RUNS = 3
    ELEMENT_BYTES = 4


class Edge(IntEnum):
    """Columns of `FusionGraph.edge`."""

    CONSUMER = 0
    DECISION = 1  # column of the configuration that decides the edge, or -1
    PLACE = 2  # place of work in front of a matrix product, or 0
    ALIGNED = 3  # `Place.ALIGNED` if the edge goes element by element, or 0


class Flow(IntEnum):
    """Columns of `FusionGraph.flow`."""

    READ = 0  # bytes read if the data goes through memory
    REUSE = 1  # uses of each element


class FusionGraph(NamedTuple):
    """What the fusion pass reads of a laid-out program of n nodes and m edges.

    Attributes:
      kind: `(n,)` of `Kind`.
      output: `(n,)` True if the result must be in memory.
      node: `(n, 5)` with the columns of `Node`.
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


class Costs(NamedTuple):
    """What it takes to compute a node once under a plan, with everything that is fused in front of it.

    Attributes:
      read: `(n,)` bytes from memory.
      operations: `(n,)` vector operations.
    """

    read: NDArray[np.float64]
    operations: NDArray[np.float64]


@compiled(runtime=False)
def effective_costs(config: NDArray, graph: FusionGraph, costs: Costs) -> None:
    """Write what it takes to compute each node under a `(d,)` plan, with everything that is fused in front of it."""
    read, operations = costs.read, costs.operations
    for v in range(len(graph.kind)):
        read[v], operations[v] = 0.0, graph.node[v, Node.WORK]
    for v in range(len(graph.kind)):
        if graph.kind[v] == Kind.FREE:
            continue
        for e in range(graph.starts[v], graph.starts[v + 1]):
            c, column = graph.edge[e, Edge.CONSUMER], graph.edge[e, Edge.DECISION]
            if graph.kind[v] not in (Kind.REDUCE, Kind.MATRIX) and column >= 0 and config[column] != 0:
                read[c] += read[v] * min(graph.flow[e, Flow.REUSE], 1.0)
                operations[c] += operations[v] * graph.flow[e, Flow.REUSE]
            else:
                read[c] += graph.flow[e, Flow.READ]
