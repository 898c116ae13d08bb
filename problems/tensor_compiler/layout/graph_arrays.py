"""What compiled code reads of a graph that is laid out, and how it looks a layout up there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..graph.graph import Graph, Tables

USER, PLACE, MODE = range(3)  # of `edge`


class Program(NamedTuple):
    """The arrays of a graph; see `Graph`.

    Attributes:
      edge: `(m, 3)` consumer, place at which it takes the producer, `Read`.
    """

    kind: NDArray[np.int64]
    sort: NDArray[np.int64]
    renamed: NDArray[np.int64]
    output: NDArray[np.bool_]
    starts: NDArray[np.int64]
    edge: NDArray[np.int64]


def program(graph: Graph) -> Program:
    """Return the arrays of a graph."""
    kind, sort, renamed = (array.astype(np.int64) for array in (graph.kind, graph.sort, graph.renamed))
    edge = np.column_stack([graph.users, graph.operand, graph.read]).astype(np.int64)
    return Program(kind, sort, renamed, graph.output, graph.user_starts, edge)


@compiled(runtime=False)
def layout_of(v: int, state: NDArray, program: Program, tables: Tables) -> int:
    """Return the number of the layout that v's result has."""
    return tables.result[tables.first[program.sort[v]] + state[v]]


@compiled(runtime=False)
def wanted_of(e: int, state: NDArray, program: Program, tables: Tables) -> int:
    """Return the number of the layout that an edge's consumer wants, -1 for any."""
    consumer = program.edge[e, USER]
    sort = program.sort[consumer]
    return tables.wanted[tables.wants[sort] + state[consumer] * tables.places[sort] + program.edge[e, PLACE]]
