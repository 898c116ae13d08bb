"""The arrays of a program's graph that compiled code reads, and how to look up a layout in them."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..graph.graph import ProgramGraph, Tables

compiled = compiled_for(__file__)


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


@compiled(runtime=False)
def layout_of(v: int, state: NDArray, program: GraphArrays, tables: Tables) -> int:
    """Return the number of the layout that v's result has."""
    return tables.result[tables.first[program.signature[v]] + state[v]]


@compiled(runtime=False)
def wanted_of(e: int, state: NDArray, program: GraphArrays, tables: Tables) -> int:
    """Return the number of the layout that an edge's consumer wants, -1 for any."""
    consumer = program.edge[e, GraphEdge.CONSUMER]
    signature = program.signature[consumer]
    return tables.wanted[
        tables.wants[signature] + state[consumer] * tables.places[signature] + program.edge[e, GraphEdge.PLACE]
    ]
