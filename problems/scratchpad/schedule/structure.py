"""What the contest's problem declares: decisions of one operation interact, and those of neighbours in the graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Decomposition, Graph, Structure

from .arrays import Arrays

_WHAT = ("width", "height", "depth", "order", "keep", "take in")
_NODE = ("log width", "log height", "log depth", "log cost")


def structure(graph: Arrays, owners: list[int], parts: Decomposition) -> Structure:
    """Return the structure of the space.

    Args:
      owners: the operation that each column belongs to.
    """
    edges, deciders = _edges(graph)
    d = len(owners)
    members: list[set[int]] = [set() for _ in graph.outputs]
    for column, op in enumerate(owners):
        members[op].add(column)
    for (producer, _), column in zip(edges, deciders, strict=True):
        members[producer].add(column)
    near: list[set[int]] = [set() for _ in range(d)]
    for columns in members:
        for column in columns:
            near[column] |= columns
    rows = [sorted(found - {column}) for column, found in enumerate(near)]
    nodes = _nodes(graph)
    what, edge = np.zeros((d, len(_WHAT)), np.float32), np.full(d, -1, np.int32)
    for kind in range(5):
        chosen = graph.columns[:, kind]
        what[chosen[chosen >= 0], kind] = 1
    what[deciders, 5], edge[deciders] = 1, np.arange(len(deciders))
    return Structure(
        starts=np.cumsum([0, *map(len, rows)]),
        neighbours=np.array([n for row in rows for n in row], np.int32),
        features=np.hstack([what, nodes[owners]]),
        feature_names=(*_WHAT, *_NODE),
        graph=Graph(nodes, _NODE, np.array(edges, np.int32).reshape(-1, 2)),
        edges=edge,
        nodes=np.where(edge < 0, np.array(owners), -1).astype(np.int32),
        parts=parts,
    )


def _edges(graph: Arrays) -> tuple[list[tuple[int, int]], list[int]]:
    """Return producer and consumer of each edge, and the column that decides it."""
    consumers = np.repeat(np.arange(len(graph.outputs)), np.diff(graph.starts))
    inside = np.flatnonzero(graph.fuse >= 0)
    producers = graph.producers[graph.inputs[inside]]
    pairs = [(int(a), int(b)) for a, b in zip(producers, consumers[inside], strict=True)]
    return pairs, graph.fuse[inside].tolist()


def _nodes(graph: Arrays) -> NDArray[np.float32]:
    sizes = graph.sizes[graph.outputs]
    return np.log1p(np.column_stack([sizes, graph.depths, graph.costs])).astype(np.float32)
