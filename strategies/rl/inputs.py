"""A task as the input of the network: arrays of padded shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbo_suite import Structure, Task

from .layers import SEGMENT
from .parameter_values import ParameterValues
from .policy import STATE, GraphInputs

_POSITIONS = 16
_FACTS = 4  # numbers of a parameter that come from the space


class Names(NamedTuple):
    """The names of the features that a policy takes: one policy serves tasks of several families.

    Attributes:
      nodes: of a node of the computation graph.
      parameters: of a parameter.
    """

    nodes: tuple[str, ...]
    parameters: tuple[str, ...]

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> Names:
        """Return all names of the features of some tasks, each once."""
        found = [_own_names(task) for task in tasks]
        return cls(
            *(tuple(dict.fromkeys(name for names in side for name in names)) for side in zip(*found, strict=True))
        )

    @property
    def widths(self) -> tuple[int, int]:
        """The number of inputs of a node and of a parameter."""
        return len(self.nodes), len(self.parameters) + _FACTS

    def unknown(self, task: Task) -> list[str]:
        """Return the features of a task that are not among these."""
        nodes, parameters = _own_names(task)
        return [*(n for n in nodes if n not in self.nodes), *(n for n in parameters if n not in self.parameters)]


def graph_inputs(task: Task, values: ParameterValues, names: Names) -> GraphInputs:
    """Return the task as the network sees it; features that the task does not have are 0.

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
    own = _own_names(task)
    nodes = _aligned(_squashed(nodes), own.nodes, names.nodes)
    features = _aligned(_squashed(features), own.parameters, names.parameters)
    return _assembled(nodes, edges, np.hstack([features, facts]), ends, values)


def observed(
    task: Task, values: ParameterValues, n: int, state: NDArray | None = None, statistics: NDArray | None = None
) -> NDArray[np.float32]:
    """Return `(n, STATE)` numbers of each value, padded.

    Args:
      state: `(d,)` a candidate; by default the task's default.
      statistics: `(c, 2)` what is known of each value; by default nothing.
    """
    known = values.state(task.default if state is None else state, task.default)
    more = np.zeros((len(known), STATE - known.shape[1])) if statistics is None else statistics
    return padded(np.hstack([known, more]), n).astype(np.float32)


def _own_names(task: Task) -> Names:
    s = task.structure
    own = tuple(f"position {i}" for i in range(2 * (_POSITIONS // 2))) if s is None else tuple(s.feature_names)
    return Names(own if s is None or s.graph is None else tuple(s.graph.feature_names), own)


def _aligned(features: NDArray, own: tuple[str, ...], wanted: tuple[str, ...]) -> NDArray:
    """Return the columns in the order of the wanted names; zeros for a name that is not there."""
    place = {name: i for i, name in enumerate(wanted)}
    aligned = np.zeros((len(features), len(wanted)))
    aligned[:, [place[name] for name in own]] = features
    return aligned


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
