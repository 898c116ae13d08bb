"""The structures that the tasks declare: which decisions interact, their features, and the graph of the program."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bbo_suite import Graph as DeclaredGraph
from bbo_suite import Structure

from ..graph.interactions import interactions
from ..hardware.kernel_row import PRODUCT_COLUMNS
from ..hlo.opcodes import Kind
from ..layout.arrays import Edge, FusionGraph, Node
from ..layout.layout_pass import LayoutPass
from ..layout.variables import Incoming, VariableEdge
from ..passes import PASSES, SETTINGS, LayoutResult, Passes

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

JOINT_FEATURES = (*(f"pass is {name}" for name in PASSES), *NODE_FEATURES, "log values")


def node_features(program: FusionGraph) -> NDArray[np.float32]:
    """Return `(n, f)` features in the order of `NODE_FEATURES`."""
    n = len(program.kind)
    consumers, producers = np.diff(program.starts), np.bincount(program.edge[:, Edge.CONSUMER], minlength=n)
    products = 2 * program.loops[program.row, :PRODUCT_COLUMNS].prod(axis=1)
    sizes = [*program.node[:, [Node.ELEMENTS, Node.BYTES, Node.WORK]].T, products, program.node[:, Node.RUNS]]
    one_hot = np.eye(len(Kind))[program.kind]
    numbers = np.column_stack([*map(np.log1p, sizes), np.log1p(consumers), np.log1p(producers), program.output])
    return np.hstack([one_hot, numbers]).astype(np.float32)


def declare_fusion(program: FusionGraph, d: int) -> Structure:
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


def declare_layout(layout: LayoutPass) -> Structure:
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
    starts, neighbours = interactions(*_shared_places(layout), d)
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


def _shared_places(layout: LayoutPass) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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


def declare_joint(passes: Passes, graph: LayoutResult) -> Structure:
    """Return the structure of a flat row, on the program in its default layouts.

    Decisions about layouts interact as in the layout task, decisions about fusion as in the fusion task. Also, all
    decisions about one operation or its edges interact.

    Args:
      passes: of the compiler.
      graph: the program in its default layouts.
    """
    nodes = _nodes(passes)
    places, decisions = [nodes.reshape(-1)], [np.repeat(np.arange(len(nodes)), 2)]
    layout = declare_layout(passes.layout)
    fusion = declare_fusion(graph.fusion.arrays, len(graph.fusion.columns))
    own = [(layout, passes.columns("layout")), (fusion, graph.decisions.columns)]
    beyond = len(passes.source)
    for structure, columns in own:
        rows = np.repeat(np.arange(len(columns)), np.diff(structure.starts))
        pairs = np.arange(beyond, beyond + len(rows))
        places += [pairs, pairs]
        decisions += [columns[rows], columns[structure.neighbours]]
        beyond += len(rows)
    at, who = np.concatenate(places), np.concatenate(decisions)
    starts, neighbours = interactions(at[at >= 0], who[at >= 0], len(nodes))
    laid = np.full(len(passes.source) + 1, -1)
    real = graph.laid.origin >= 0
    laid[graph.laid.origin[real]] = np.flatnonzero(real)
    features = _features(passes, graph, laid[nodes[:, 0]])
    return Structure(
        starts,
        neighbours,
        features,
        JOINT_FEATURES,
        fusion.graph,
        nodes=laid[nodes[:, 0]].astype(np.int32),
        passes=passes,
    )


def _nodes(passes: Passes) -> NDArray[np.int64]:
    """Return `(d, 2)`: the nodes of the first graph that each decision is about; -1 if there is no second."""
    nodes = np.full((len(passes.flat.sizes), 2), -1)
    nodes[passes.flat.span["layout"], 0] = passes.layout.nodes
    fused, program = passes.layout.fused, passes.source
    edges = np.column_stack([program.producers[fused], program.users[fused]])
    copied = np.column_stack([passes.layout.copied, np.full(len(passes.layout.copied), -1)])
    nodes[passes.flat.span["fusion"]] = np.concatenate([edges, copied])
    for name, slots in SETTINGS.items():
        nodes[passes.flat.span[name], 0] = np.repeat(passes.flat.roots, len(slots))
    return nodes


def _features(passes: Passes, graph: LayoutResult, laid: NDArray) -> NDArray[np.float32]:
    """Return `(d, f)` in the order of `JOINT_FEATURES`; zeros where the node is gone in the default layouts."""
    known = np.where(laid[:, None] >= 0, node_features(graph.fusion.arrays)[laid], 0.0)
    one_hot = np.zeros((len(passes.flat.sizes), len(PASSES)))
    for i, name in enumerate(PASSES):
        one_hot[passes.flat.span[name], i] = 1.0
    return np.hstack([one_hot, known, np.log1p(passes.flat.sizes)[:, None]]).astype(np.float32)
