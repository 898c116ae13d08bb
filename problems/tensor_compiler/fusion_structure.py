"""What a fusion task declares about its decisions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Graph as DeclaredGraph
from bbo_suite import Structure

from .fusion_arrays import BYTES, COLUMN, ELEMENTS, USER, WEIGHT, WORK, Arrays
from .interactions import interactions
from .opcodes import Kind

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


def declare(program: Arrays, d: int) -> Structure:
    """Return the structure of the `d` decisions about edges of a program; one about several edges is at the first.

    Two decisions interact if their edges meet in a node: then they shape the same kernels.
    """
    producers, users = np.repeat(np.arange(len(program.kind)), np.diff(program.starts)), program.edge[:, USER]
    decided = np.flatnonzero(program.edge[:, COLUMN] >= 0)[::-1]
    edges = np.empty(d, np.int64)
    edges[program.edge[decided, COLUMN]] = decided
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


def node_features(program: Arrays) -> NDArray[np.float32]:
    """Return `(n, f)` features in the order of `NODE_FEATURES`."""
    n = len(program.kind)
    consumers, producers = np.diff(program.starts), np.bincount(program.edge[:, USER], minlength=n)
    products = 2 * program.loops[program.row, :5].prod(axis=1)
    sizes = [*program.node[:, [ELEMENTS, BYTES, WORK]].T, products, program.node[:, WEIGHT]]
    one_hot = np.eye(len(Kind))[program.kind]
    numbers = np.column_stack([*map(np.log1p, sizes), np.log1p(consumers), np.log1p(producers), program.output])
    return np.hstack([one_hot, numbers]).astype(np.float32)
