"""The plan of a laid-out program: a copy where two layouts meet, and no node for an operation that only renames."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite.compiled import compiled_for

from ..graph.graph import Tables
from ..hlo.opcodes import Kind
from .graph_arrays import GraphArrays, GraphEdge, layout_of, wanted_of

compiled = compiled_for(__file__)

_SKIPPED = -1


class Plan(NamedTuple):
    """The numbers of the first graph's nodes in the laid-out graph, whose nodes are numbered from 0 to n' - 1.

    Attributes:
      number: `(n,)` of each node; for a node that only renames, the number of the node whose array it shares.
      taken: `(m,)` the number of the node at which each edge now starts, or -1 if the edge is gone.
      whole: `(n + room,)` bytes of the arrays.
      origin: `(n + room,)` the node of the first graph, `-1 - u` for a copy of node u.
      layout: `(n + room,)` the layout of a copy.
      source: `(n + room,)` the number of the node that a copy copies.
      output: `(n + room,)` True if the result must be in memory.
      starts: `(n + room + 1,)` where the edges of each start.
    """

    number: NDArray[np.int64]
    taken: NDArray[np.int64]
    whole: NDArray[np.float64]
    origin: NDArray[np.int64]
    layout: NDArray[np.int64]
    source: NDArray[np.int64]
    output: NDArray[np.bool_]
    starts: NDArray[np.int64]


@compiled(runtime=False)
def number_nodes(
    state: NDArray, program: GraphArrays, tables: Tables, seen: NDArray, owner: NDArray, plan: Plan
) -> int:
    """Fill in the plan and return the number of nodes; `seen` and `owner` have room for any node's layouts, all -1."""
    count = 0
    for v in range(len(program.kind)):
        signature, layout, p = program.signature[v], layout_of(v, state, program, tables), program.renamed[v]
        if p >= 0 and _only_renames(v, p, state, program, tables):
            plan.number[v] = plan.number[p]
        else:
            plan.number[v] = count
            plan.origin[count], plan.source[count], plan.output[count] = v, -1, False
            plan.whole[count] = tables.bytes[tables.array[signature] + layout]
            plan.starts[count + 1] = 0
            count += 1
        here, free = plan.number[v], program.kind[v] == Kind.FREE
        if program.output[v]:
            wanted = tables.compact[signature]
            if wanted != layout and not free:
                seen[wanted], owner[wanted] = v, count
                count = _copy(v, wanted, count, program, tables, plan)
                plan.output[count - 1] = True
            else:
                plan.output[here] = True
        for e in range(program.starts[v], program.starts[v + 1]):
            c = program.edge[e, GraphEdge.CONSUMER]
            taken, q = here, program.renamed[c]
            if q >= 0:
                taken = _SKIPPED if _only_renames(c, q, state, program, tables) else here
            elif not free:
                wanted = wanted_of(e, state, program, tables)
                if wanted >= 0 and wanted != layout:
                    if seen[wanted] != v:
                        seen[wanted], owner[wanted] = v, count
                        count = _copy(v, wanted, count, program, tables, plan)
                    taken = owner[wanted]
            plan.taken[e] = taken
            if taken >= 0:
                plan.starts[taken + 1] += 1
    plan.starts[0] = 0
    for i in range(count):
        plan.starts[i + 1] += plan.starts[i]
    return count


@compiled(runtime=False)
def _only_renames(v: int, p: int, state: NDArray, program: GraphArrays, tables: Tables) -> bool:
    """True if v, which renames its operand p, finds p in the layout in which no data has to move."""
    signature = program.signature[v]
    return tables.wanted[tables.wants[signature] + state[v] * tables.places[signature]] == layout_of(
        p, state, program, tables
    )


@compiled(runtime=False)
def _copy(v: int, layout: int, count: int, program: GraphArrays, tables: Tables, plan: Plan) -> int:
    """Add a copy of v to the plan and return the new number of nodes."""
    plan.origin[count], plan.layout[count], plan.source[count] = -1 - v, layout, plan.number[v]
    plan.whole[count] = tables.bytes[tables.array[program.signature[v]] + layout]
    plan.output[count] = False
    plan.starts[count + 1] = 0
    plan.starts[plan.number[v] + 1] += 1
    return count + 1
