"""What a fusion task declares about its decisions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from bbo_suite import Graph as DeclaredGraph
from bbo_suite import Structure

from .graph import Graph
from .opcodes import Kind

_MOST_AT_A_NODE = 32

NODE_FEATURES = (
    *(f"is {kind.name.lower()}" for kind in Kind),
    "log elements",
    "log bytes",
    "log vector operations",
    "log matrix operations",
    "log runs",
    "consumers",
    "producers",
    "is output",
)
EDGE_FEATURES = (
    *(f"producer {name}" for name in NODE_FEATURES),
    *(f"consumer {name}" for name in NODE_FEATURES),
    "log bytes read",
    "log reuse",
)


def declare(graph: Graph, edges: NDArray[np.int64]) -> Structure:
    """Return the structure of the decisions about `(d,)` edges of a graph.

    Two decisions interact if their edges meet in a node: then they shape the same kernels.
    """
    starts, neighbours = _interactions(graph.producers[edges], graph.users[edges])
    nodes = _node_features(graph)
    ends = [nodes[graph.producers[edges]], nodes[graph.users[edges]]]
    flow = np.log1p(np.column_stack([graph.read[edges], graph.reuse[edges]]))
    pairs = np.column_stack([graph.producers, graph.users]).astype(np.int32)
    return Structure(
        starts=starts,
        neighbours=neighbours,
        features=np.hstack([*ends, flow]).astype(np.float32),
        feature_names=EDGE_FEATURES,
        graph=DeclaredGraph(nodes, NODE_FEATURES, pairs),
        edges=edges.astype(np.int32),
    )


def _interactions(producers: NDArray, users: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the decisions that share a node with each, as compressed sparse rows.

    At a node with many edges each is tied to the nearest in number only, which bounds the size.
    """
    d = len(producers)
    ends = np.concatenate([producers, users])
    decisions = np.tile(np.arange(d), 2)
    order = np.lexsort((decisions, ends))
    ends, decisions = ends[order], decisions[order]
    left, right = [], []
    for distance in range(1, _MOST_AT_A_NODE):
        same = np.flatnonzero(ends[distance:] == ends[:-distance])
        left.append(decisions[same])
        right.append(decisions[same + distance])
    rows, columns = np.concatenate(left + right), np.concatenate(right + left)
    table = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(d, d)).tocsr()
    table.setdiag(0)
    table.eliminate_zeros()
    table.sort_indices()
    return table.indptr.astype(np.int64), table.indices.astype(np.int32)


def _node_features(graph: Graph) -> NDArray[np.float32]:
    """Return `(n, f)` features in the order of `NODE_FEATURES`."""
    n = len(graph)
    consumers, producers = np.diff(graph.user_starts), np.bincount(graph.users, minlength=n)
    sizes = [graph.elements, graph.bytes, graph.operations, 2 * graph.matrix.prod(axis=1), graph.weight]
    one_hot = np.eye(len(Kind))[graph.kind]
    numbers = np.column_stack([*map(np.log1p, sizes), np.log1p(consumers), np.log1p(producers), graph.output])
    return np.hstack([one_hot, numbers]).astype(np.float32)
