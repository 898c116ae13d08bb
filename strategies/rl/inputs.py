"""What a task is to the network: arrays of padded shapes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Structure, Task

from .attention import SEGMENT
from .changes import Changes
from .policy import VALUES, Graph

_POSITIONS = 16


def graph_of(task: Task, changes: Changes) -> Graph:
    """Return the task as the network sees it.

    Without a computation graph the parameters themselves are the nodes, and those that interact are joined; without a
    structure they form a chain and know their positions.
    """
    d, s = len(task.space), task.structure
    features: NDArray = _positions(d) if s is None else s.features
    if s is not None and s.graph is not None:
        nodes, edges, ends = s.graph.node_features, s.graph.edges, _ends(s, d)
    else:
        nodes, edges = features, _links(s, d)
        ends = np.column_stack([np.arange(d), np.full(d, -1)])
    facts = np.column_stack([np.log(task.space.sizes), np.eye(3)[task.space.kinds]])
    return _padded(_squashed(nodes), edges, np.hstack([_squashed(features), facts]), ends, changes)


def _ends(structure: Structure, d: int) -> NDArray:
    """Return `(d, 2)` the nodes that each parameter is about, -1 for none."""
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
    once = rows < structure.neighbours
    return np.column_stack([rows[once], structure.neighbours[once]])


def _positions(d: int) -> NDArray[np.float64]:
    """Return sines and cosines of the place in the row, from one period over the whole row to a fine one."""
    angles = np.outer(np.arange(d) / d, 2.0 ** np.arange(_POSITIONS // 2)) * 2 * np.pi
    return np.hstack([np.sin(angles), np.cos(angles)])


def _squashed(features: NDArray) -> NDArray:
    """Return features of one magnitude, in a way that does not depend on the graph."""
    return np.sign(features) * np.log1p(np.abs(np.nan_to_num(features)))


def _padded(nodes: NDArray, edges: NDArray, features: NDArray, ends: NDArray, changes: Changes) -> Graph:
    n = _bucket(len(nodes) + 1)  # one node more at least, for the edges of the padding
    spare = np.full((_bucket(len(edges)) - len(edges), 2), n - 1)
    d, c = -(-_bucket(len(features)) // SEGMENT) * SEGMENT, _bucket(len(changes))
    value = np.minimum(changes.bin, VALUES - 1)
    return Graph(
        nodes=_rows(nodes, n).astype(np.float32),
        edges=np.concatenate([edges, spare]).astype(np.int32),
        features=_rows(features, d).astype(np.float32),
        ends=_rows(np.maximum(ends, 0), d).astype(np.int32),
        bound=_rows(ends >= 0, d).astype(np.float32),
        real=np.arange(d) < len(features),
        parameter=_rows(changes.parameter, c).astype(np.int32),
        value=_rows(value, c).astype(np.int32),
        prior=_rows(changes.prior, c).astype(np.float32),
    )


def _rows(array: NDArray, n: int) -> NDArray:
    """Return the array with zeros behind it, `n` rows in all."""
    return np.concatenate([array, np.zeros((n - len(array), *array.shape[1:]), array.dtype)])


def _bucket(n: int) -> int:
    """Return the next length that shapes are padded to: 8 of them from each power of two to the next.

    Tasks of equal padded shapes share what is compiled.
    """
    step = max(SEGMENT, 1 << max(0, n.bit_length() - 3))
    return max(1, -(-n // step)) * step
