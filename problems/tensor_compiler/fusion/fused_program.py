"""The kernels of the last candidate: what each computes, how long it takes, and which of the others it reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..layout.arrays import Edge, FusionGraph, Node
from .columns import Member, Span, Tally
from .state import FusionState


@dataclass(frozen=True)
class FusedProgram:
    """The kernels of one candidate, in the order in which they run.

    Attributes:
      result: `(k,)` the node that each kernel stores.
      cycles: `(k,)` of all its runs.
      starts, members: kernel i computes the nodes `members[starts[i]:starts[i + 1]]`, ascending.
      edges: `(m, 2)` numbers of kernels: the second reads what the first stores.
    """

    result: NDArray[np.int64]
    cycles: NDArray[np.float64]
    starts: NDArray[np.int64]
    members: NDArray[np.int64]
    edges: NDArray[np.int64]


def fused_program(graph: FusionGraph, state: FusionState) -> FusedProgram:
    """Return the kernels of the last candidate that was evaluated."""
    n = len(graph.kind)
    result = np.flatnonzero(state.tally[:, Tally.FUSED])
    place = np.full(n, -1)
    place[result] = np.arange(len(result))
    nodes, kernels = spread(np.arange(n), state.span[:n, Span.START], state.span[:n, Span.COUNT])
    kernels = place[state.member[kernels, Member.KERNEL]]
    order = np.lexsort((nodes, kernels))
    starts = np.searchsorted(kernels[order], np.arange(len(result) + 1))
    cycles = state.cycles[result] * graph.node[result, Node.RUNS]
    return FusedProgram(result, cycles, starts, nodes[order], _edges(graph, nodes, kernels, place))


def _edges(graph: FusionGraph, nodes: NDArray, kernels: NDArray, place: NDArray) -> NDArray[np.int64]:
    """Return the pairs of kernels between which data goes through memory."""
    n = len(graph.kind)
    producers = np.repeat(np.arange(n), np.diff(graph.starts))
    first = np.searchsorted(nodes, np.arange(n + 1))
    users = graph.edge[:, Edge.CONSUMER]
    producer, where = spread(producers, first[users], np.diff(first)[users])
    reader = kernels[where]
    inside = np.isin(producer * len(place) + reader, nodes * len(place) + kernels)
    through = (place[producer] >= 0) & ~inside
    return np.unique(np.column_stack([place[producer], reader])[through], axis=0)


def spread(values: NDArray, starts: NDArray, counts: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each value as often as its count says, with the places `starts`, `starts + 1`, ... beside it."""
    ends = np.cumsum(counts)
    return np.repeat(values, counts), np.arange(ends[-1] if len(ends) else 0) + np.repeat(
        starts - ends + counts, counts
    )
