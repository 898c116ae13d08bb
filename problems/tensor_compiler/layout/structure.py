"""The structure that a layout task declares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bbo_suite import Graph as DeclaredGraph
from bbo_suite import Structure

from ..graph.interactions import interactions
from .arrays import Edge
from .layout_pass import LayoutPass
from .node_features import NODE_FEATURES, node_features
from .variables import Incoming, VariableEdge


def declare(layout: LayoutPass) -> Structure:
    """Return the structure of the decisions of a layout pass, on the program in its default layouts.

    Two decisions interact if layouts spread from one to the other along a path without a third decision.
    """
    arrays, origin = (laid := layout.apply(layout.default())).arrays, laid.origin
    nodes, d = node_features(arrays), len(layout.nodes)
    place = np.full(len(layout.graph), -1)
    place[origin[origin >= 0]] = np.flatnonzero(origin >= 0)
    decided = place[layout.nodes]
    known = np.where(decided[:, None] >= 0, nodes[decided], 0.0)
    producers = np.repeat(np.arange(len(nodes)), np.diff(arrays.starts))
    starts, neighbours = interactions(*_meetings(layout), d)
    return Structure(
        starts=starts,
        neighbours=neighbours,
        features=np.hstack([known, np.log1p(layout.options)[:, None]]).astype(np.float32),
        feature_names=(*NODE_FEATURES, "log options"),
        graph=DeclaredGraph(
            nodes, NODE_FEATURES, np.column_stack([producers, arrays.edge[:, Edge.CONSUMER]]).astype(np.int32)
        ),
        nodes=decided.astype(np.int32),
    )


def _meetings(layout: LayoutPass) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return places and their decisions: regions without a decision, and edges between two decisions."""
    k = len(layout.variables.firsts) - 1
    decision = np.full(k, -1)
    decision[layout.variables.of[layout.nodes]] = np.arange(len(layout.nodes))
    incoming = layout.variables.incoming
    ends = np.column_stack(
        [incoming[:, Incoming.PRODUCER], layout.variables.edge[incoming[:, Incoming.EDGE], VariableEdge.CONSUMER]]
    )
    ends = ends[(ends > 0).all(axis=1)]
    tuned = decision[ends] >= 0
    inner = ends[~tuned.any(axis=1)]
    links = coo_array((np.ones(len(inner)), inner.T), shape=(k, k))
    region = connected_components(links, directed=False)[1]
    direct, to_region = np.flatnonzero(tuned.all(axis=1)), tuned[:, 0] != tuned[:, 1]
    free = np.where(tuned[to_region, 0], ends[to_region, 1], ends[to_region, 0])
    bound = np.where(tuned[to_region, 0], ends[to_region, 0], ends[to_region, 1])
    places = [region[free].astype(np.int64), k + direct, k + direct]
    return np.concatenate(places), decision[np.concatenate([bound, *ends[direct].T])]
