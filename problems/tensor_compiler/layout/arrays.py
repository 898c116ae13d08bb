"""A laid-out program as the few packed arrays that a sweep of fusion reads, and what computing its nodes costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..hlo.opcodes import Kind

# Places of work in a kernel, as bits (see `timing`); aligned: element by element all the way to the result.
LOOPING, LEFT, RIGHT, ALIGNED = 1, 2, 4, 8
FREE, SOURCE = int(Kind.FREE), int(Kind.SOURCE)
REDUCE, PRODUCT, OPAQUE = int(Kind.REDUCE), int(Kind.MATRIX), int(Kind.OPAQUE)

# Columns of the packed arrays; few arrays with rows that are used together are what makes the sweep fast.
ELEMENTS, BYTES, WORK, WEIGHT, ITEM = range(5)  # of `node`
USER, COLUMN, WHERE, STRAIGHT = range(4)  # of `edge`
READ, REUSE = range(2)  # of `flow`


class Arrays(NamedTuple):
    """What the sweep reads of a program of n nodes and m edges.

    Attributes:
      kind: `(n,)` of `Kind`.
      output: `(n,)` must the result be in memory?
      node: `(n, 5)` elements, bytes written, vector operations, weight (how often it runs), bytes of an element.
      row: `(n,)` row of `loops` and `tiles` for a kernel around each node.
      loops: `(r, 7)` groups, rows, columns and depth of a matrix product, or zeros; outer, rows and columns of a loop.
      tiles: `(r, 4, 3)` that a kernel can have by default.
      starts: `(n + 1,)`; v's edges to its consumers are `starts[v]:starts[v + 1]`.
      edge: `(m, 4)` consumer, column of the configuration that decides it or -1, the place of work in front of a
        matrix product or 0, and ALIGNED if it goes element by element.
      flow: `(m, 2)` bytes read if through memory, uses of each element.
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
    """What computing a node once takes under a plan, with all that is fused in front of it.

    Attributes:
      read: `(n,)` bytes from memory.
      operations: `(n,)` vector operations.
    """

    read: NDArray[np.float64]
    operations: NDArray[np.float64]


@compiled()
def effective_costs(config: NDArray, graph: Arrays) -> Costs:
    """Return what computing each node takes if everything is fused in front of it that a `(d,)` plan fuses."""
    read, operations = np.zeros(len(graph.kind)), graph.node[:, WORK].copy()
    for v in range(len(graph.kind)):
        if graph.kind[v] == FREE:
            continue
        for e in range(graph.starts[v], graph.starts[v + 1]):
            c, column = graph.edge[e, USER], graph.edge[e, COLUMN]
            if graph.kind[v] not in (REDUCE, PRODUCT) and column >= 0 and config[column] != 0:
                read[c] += read[v] * min(graph.flow[e, REUSE], 1.0)
                operations[c] += operations[v] * graph.flow[e, REUSE]
            else:
                read[c] += graph.flow[e, READ]
    return Costs(read, operations)
