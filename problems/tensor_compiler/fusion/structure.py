"""The structure that a fusion task declares."""

from __future__ import annotations

import numpy as np

from bbo_suite import Graph as DeclaredGraph
from bbo_suite import Structure

from ..graph.interactions import interactions
from ..layout.arrays import Edge, FusionGraph
from ..layout.node_features import NODE_FEATURES, node_features

EDGE_FEATURES = (
    *(f"producer {name}" for name in NODE_FEATURES),
    *(f"consumer {name}" for name in NODE_FEATURES),
    "log bytes read",
    "log reuse",
)


def declare(program: FusionGraph, d: int) -> Structure:
    """Return the structure of `d` decisions about edges; a decision about several edges belongs to the first.

    Two decisions interact if their edges share a node, because they then shape the same kernels.
    """
    producers, users = np.repeat(np.arange(len(program.kind)), np.diff(program.starts)), program.edge[:, Edge.CONSUMER]
    decided = np.flatnonzero(program.edge[:, Edge.DECISION] >= 0)[::-1]
    edges = np.empty(d, np.int64)
    edges[program.edge[decided, Edge.DECISION]] = decided
    ends = np.concatenate([producers[edges], users[edges]])
    starts, neighbours = interactions(ends, np.tile(np.arange(d), 2), d)
    nodes = node_features(program)
    features = np.hstack([nodes[producers[edges]], nodes[users[edges]], np.log1p(program.flow[edges])])
    pairs = np.column_stack([producers, users]).astype(np.int32)
    return Structure(
        starts=starts,
        neighbours=neighbours,
        features=features.astype(np.float32),
        feature_names=EDGE_FEATURES,
        graph=DeclaredGraph(nodes, NODE_FEATURES, pairs),
        edges=edges.astype(np.int32),
    )
