"""The structure of a problem: the values that parameters decide about, and the flows between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bbo_suite import Graph, Structure

from ..tensor_compiler.graph.interactions import interactions
from .decisions import ARGUMENT, BARRIER, FLAG, LAYOUT, RESULT, Decision, Description, Value

_KINDS = (FLAG, ARGUMENT, RESULT, LAYOUT, BARRIER)
_NODE = ("is argument", "is inside", "is result", "log elements", "rank", "inputs", "users")
_FEATURES = (*(f"is {kind}" for kind in _KINDS), "values", *_NODE)


def declare(description: Description, decisions: Sequence[Decision]) -> Structure:
    """Return the structure: two parameters interact if they have the same value, or values with a flow between them.

    Flags interact with everything, because they affect the whole program; so none of these interactions is declared.
    """
    edges = np.array(description.flows, np.int32).reshape(-1, 2)
    nodes = _nodes(description, edges)
    of = np.array([decision.value for decision in decisions], np.int32)
    places, parameters = [], []
    for place, ends in enumerate([*((i, i) for i in range(len(nodes))), *description.flows]):
        meeting = np.flatnonzero(np.isin(of, ends))
        parameters.append(meeting)
        places.append(np.full(len(meeting), place))
    starts, neighbours = interactions(np.concatenate(places), np.concatenate(parameters), len(decisions))
    kinds = np.array([[decision.kind == kind for kind in _KINDS] for decision in decisions])
    counts = np.array([[len(decision.values)] for decision in decisions])
    own = np.where(of[:, None] >= 0, nodes[of], 0.0)
    return Structure(
        starts=starts,
        neighbours=neighbours,
        features=np.hstack([kinds, counts, own]).astype(np.float32),
        feature_names=_FEATURES,
        graph=Graph(nodes, _NODE, edges),
        nodes=of,
    )


def _nodes(description: Description, edges: np.ndarray) -> np.ndarray:
    groups: tuple[tuple[Value, ...], ...] = (description.arguments, description.marks, description.results)
    values = [value for group in groups for value in group]
    kinds = np.repeat(np.eye(3), [len(group) for group in groups], axis=0)
    sizes = [[np.log1p(np.prod(value.shape, dtype=float)), len(value.shape)] for value in values]
    degrees = [np.bincount(edges[:, side], minlength=len(values)) for side in (1, 0)]
    return np.column_stack([kinds, np.array(sizes), *degrees]).astype(np.float32)
