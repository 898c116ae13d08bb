"""The structure that the joint task declares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Structure

from ..fusion import structure as fusion_structure
from ..graph.interactions import interactions
from ..layout import structure as layout_structure
from ..layout.node_features import NODE_FEATURES, node_features
from .flat_row import PASSES, SETTINGS
from .passes import LayoutResult, Passes

FEATURES = (*(f"pass is {name}" for name in PASSES), *NODE_FEATURES, "log values")


def declare(passes: Passes, graph: LayoutResult) -> Structure:
    """Return the structure of a flat row, on the program in its default layouts.

    Decisions about layouts interact as in the layout task, decisions about fusion as in the fusion task. Also, all
    decisions about one operation or its edges interact.

    Args:
      passes: of the compiler.
      graph: the program in its default layouts.
    """
    nodes = _nodes(passes)
    places, decisions = [nodes.reshape(-1)], [np.repeat(np.arange(len(nodes)), 2)]
    layout = layout_structure.declare(passes.layout)
    fusion = fusion_structure.declare(graph.fusion.arrays, len(graph.fusion.columns))
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
        starts, neighbours, features, FEATURES, fusion.graph, nodes=laid[nodes[:, 0]].astype(np.int32), passes=passes
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
    """Return `(d, f)` in the order of `FEATURES`; zeros where the node is gone in the default layouts."""
    known = np.where(laid[:, None] >= 0, node_features(graph.fusion.arrays)[laid], 0.0)
    one_hot = np.zeros((len(passes.flat.sizes), len(PASSES)))
    for i, name in enumerate(PASSES):
        one_hot[passes.flat.span[name], i] = 1.0
    return np.hstack([one_hot, known, np.log1p(passes.flat.sizes)[:, None]]).astype(np.float32)
