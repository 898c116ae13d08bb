"""A task as the input of the network: arrays of padded shapes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Structure, Task

from .layers import SEGMENT
from .parameter_values import ParameterValues
from .policy import GraphInputs

_POSITIONS = 16


def graph_inputs(task: Task, values: ParameterValues) -> GraphInputs:
    """Return the task as the network sees it.

    Without a computation graph the parameters themselves are the nodes, and an edge joins two that interact. Without a
    structure they form a chain, and their features are their positions.
    """
    d, s = len(task.space), task.structure
    features: NDArray = _positions(d) if s is None else s.features
    if s is not None and s.graph is not None:
        nodes, edges, ends = s.graph.node_features, s.graph.edges, _ends(s, d)
    else:
        nodes, edges = features, _links(s, d)
        ends = np.column_stack([np.arange(d), np.full(d, -1)])
    facts = np.column_stack([np.log(task.space.sizes), np.eye(3)[task.space.kinds]])
    return _assembled(_squashed(nodes), edges, np.hstack([_squashed(features), facts]), ends, values)


def widths_of(task: Task) -> tuple[int, int]:
    """Return the number of features of a node and of a parameter."""
    s = task.structure
    width = 2 * (_POSITIONS // 2) if s is None else s.features.shape[1]
    return (width if s is None or s.graph is None else s.graph.node_features.shape[1]), width + 4


def _ends(structure: Structure, d: int) -> NDArray:
    """Return `(d, 2)` the nodes that each parameter decides about, -1 for none."""
    ends = np.full((d, 2), -1)
    if structure.nodes is not None:
        ends[:, 0] = structure.nodes
    if structure.edges is not None and structure.graph is not None:
        on_edge = structure.edges >= 0
        ends[on_edge] = structure.graph.edges[structure.edges[on_edge]]
    return ends


def _links(structure: Structure | None, d: int) -> NDArray:
    if structure is None:
        return np.column_stack([np.arange(d - 1), np.arange(1, d)])
    rows = np.repeat(np.arange(d), np.diff(structure.starts))
    each_once = rows < structure.neighbours
    return np.column_stack([rows[each_once], structure.neighbours[each_once]])


def _positions(d: int) -> NDArray[np.float64]:
    """Return `(d, 16)` sines and cosines of the position, from one period over all parameters to 128 periods."""
    angles = np.outer(np.arange(d) / d, 2.0 ** np.arange(_POSITIONS // 2)) * 2 * np.pi
    return np.hstack([np.sin(angles), np.cos(angles)])


def _squashed(features: NDArray) -> NDArray:
    """Return features scaled to similar magnitudes, in a way that does not depend on the graph."""
    return np.sign(features) * np.log1p(np.abs(np.nan_to_num(features)))


def _assembled(
    nodes: NDArray, edges: NDArray, features: NDArray, ends: NDArray, values: ParameterValues
) -> GraphInputs:
    n = _bucket(len(nodes) + 1)  # at least one more node, for the edges of the padding
    spare = np.full((_bucket(len(edges)) - len(edges), 2), n - 1)
    d, c = -(-_bucket(len(features)) // SEGMENT) * SEGMENT, _bucket(len(values))
    return GraphInputs(
        nodes=padded(nodes, n).astype(np.float32),
        edges=np.concatenate([edges, spare]).astype(np.int32),
        features=padded(features, d).astype(np.float32),
        ends=padded(np.maximum(ends, 0), d).astype(np.int32),
        bound=padded(ends >= 0, d).astype(np.float32),
        real=np.arange(d) < len(features),
        parameter=padded(values.parameter, c).astype(np.int32),
        value=padded(values.bin, c).astype(np.int32),
        exists=np.arange(c) < len(values),
    )


def padded(array: NDArray, n: int) -> NDArray:
    """Return the array with zeros appended, `n` rows in all."""
    return np.concatenate([array, np.zeros((n - len(array), *array.shape[1:]), array.dtype)])


def _bucket(n: int) -> int:
    """Return the length that shapes are padded to: one of 8 steps between powers of two.

    Tasks with equal padded shapes share their compiled code.
    """
    step = max(SEGMENT, 1 << max(0, n.bit_length() - 3))
    return max(1, -(-n // step)) * step
