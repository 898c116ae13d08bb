"""Kernels as networks take them: graphs of operations, features of the whole, and batches padded to few shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..tensor_compiler.fusion.fusion_pass import FusedProgram, Fusion, spread
from ..tensor_compiler.graph.graph import ProgramGraph
from ..tensor_compiler.hardware.kernel_row import Kernel, ProductAxis
from ..tensor_compiler.hardware.kernel_settings import SLOTS
from ..tensor_compiler.hardware.machine import MACHINES, Rate
from ..tensor_compiler.hlo.opcodes import NAMED
from ..tensor_compiler.layout.arrays import Node
from ..tensor_compiler.layout.layout_pass import LaidOutProgram

_LATER = frozenset(["acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "mulhi", "scaled-dot", "scan", "sinh"])
"""Opcodes that were named after the model that ships was trained: their numbers must not move the others."""
OPCODES = ("unknown", *sorted(NAMED - _LATER))
"""An opcode's number; one that is not in this list, or that no kernel of the training data has, is number 0."""
_NUMBER = {name: number for number, name in enumerate(OPCODES)}


def number_of(opcode: str) -> int:
    """Return the number of an opcode in `OPCODES`, 0 if it is not there."""
    return _NUMBER.get(opcode, 0)


NODE_FEATURES = (
    *("log elements", "log bytes", "log vector operations", "log element bytes"),
    *(f"log {name}" for name in ("groups", "rows", "columns", "depth", "taps", "outer", "height", "width")),
    *("is read from memory", "is the result"),
)
_UNITS = ("memory", "vector unit", "matrix unit")
KERNEL_FEATURES = (
    *(f"log {column.name.lower()}" for column in Kernel),
    *(f"log {slot}" for slot in SLOTS),
    "log estimate",
    *(f"share of {unit}" for unit in _UNITS),
    *(f"log cuts {axis}" for axis in range(3)),
)
SIZES = (16, 32, 64, 128)
"""Nodes of a padded kernel."""
BATCH_NODES = 2048
"""Nodes of a batch, padding included."""


@dataclass(frozen=True)
class KernelGraphs:
    """The graphs of k kernels, one after another, with N nodes and E edges in all.

    Attributes:
      node_starts: `(k + 1,)`; the nodes of kernel i are `node_starts[i]:node_starts[i + 1]`, in topological order.
      opcodes: `(N,)` numbers of `OPCODES`.
      nodes: `(N, len(NODE_FEATURES))` float32.
      edge_starts: `(k + 1,)`, likewise.
      edges: `(E, 2)` producer and consumer, numbered within their kernel.
    """

    node_starts: NDArray[np.int64]
    opcodes: NDArray[np.int16]
    nodes: NDArray[np.float32]
    edge_starts: NDArray[np.int64]
    edges: NDArray[np.int16]

    def __len__(self) -> int:
        """Return the number of kernels."""
        return len(self.node_starts) - 1

    def take(self, kernels: NDArray[np.int64]) -> Self:
        """Return some of the kernels, in that order."""
        node_starts, nodes = rows_of(self.node_starts, kernels)
        edge_starts, edges = rows_of(self.edge_starts, kernels)
        return type(self)(node_starts, self.opcodes[nodes], self.nodes[nodes], edge_starts, self.edges[edges])

    def cut(self, most: int) -> Self:
        """Return the kernels with at most so many nodes each: the last ones, which are nearest to the result."""
        counts = np.diff(self.node_starts)
        if counts.max(initial=0) <= most:
            return self
        owner, first = np.repeat(np.arange(len(self)), counts), np.maximum(counts - most, 0)
        nodes = np.arange(len(owner)) - self.node_starts[owner] >= first[owner]
        of_edge = np.repeat(np.arange(len(self)), np.diff(self.edge_starts))
        edges = self.edges - first[of_edge][:, None]
        inside = (edges >= 0).all(axis=1)
        ends = (np.bincount(owners, minlength=len(self)) for owners in (owner[nodes], of_edge[inside]))
        node_starts, edge_starts = (np.concatenate([[0], np.cumsum(counts)]) for counts in ends)
        shown = edges[inside].astype(np.int16)
        return type(self)(node_starts, self.opcodes[nodes], self.nodes[nodes], edge_starts, shown)

    @classmethod
    def joined(cls, graphs: list[KernelGraphs]) -> Self:
        """Return the kernels of one or more lists, one list after another."""
        columns = {field.name: [getattr(graph, field.name) for graph in graphs] for field in fields(cls)}
        for name in ("node_starts", "edge_starts"):
            lengths = np.concatenate([np.diff(starts) for starts in columns[name]])
            columns[name] = [np.concatenate([[0], np.cumsum(lengths)])]
        return cls(**{name: np.concatenate(arrays) for name, arrays in columns.items()})


class KernelReader:
    """Reads the kernels of one program."""

    def __init__(self, graph: ProgramGraph) -> None:
        self._opcodes = np.array([number_of(name) for name in graph.opcodes], np.int16)

    def read(self, laid: LaidOutProgram, fusion: Fusion, results: NDArray[np.int64]) -> KernelGraphs:
        """Return the kernels with the given results, of the candidate that the fusion pass has seen last."""
        fused, n = fusion.last_program(), len(laid.origin)
        kernel, members = _members(fused, results)
        incoming = fusion.inputs
        counts = np.diff(incoming.starts)[members]
        pair, place = spread(np.arange(len(members)), incoming.starts[members], counts)
        producer = incoming.producer[incoming.edge[place]]
        inside = kernel * n + members  # ascending
        ends = np.column_stack([kernel[pair] * n + producer, inside[pair]])
        every = np.unique(np.concatenate([inside, ends[:, 0]]))
        owner, node = every // n, every % n
        starts = np.searchsorted(owner, np.arange(len(results) + 1))
        local = np.searchsorted(every, ends) - starts[ends // n]
        edge_starts = np.searchsorted(kernel[pair], np.arange(len(results) + 1))
        outside = ~np.isin(every, inside, assume_unique=True)
        numbers = self._features(laid, node, outside, node == results[owner])
        return KernelGraphs(starts, self._numbers(laid, node), numbers, edge_starts, local.astype(np.int16))

    def _numbers(self, laid: LaidOutProgram, nodes: NDArray) -> NDArray[np.int16]:
        origin = laid.origin[nodes]
        return np.where(origin >= 0, self._opcodes[origin], _NUMBER["copy"]).astype(np.int16)

    def _features(self, laid: LaidOutProgram, nodes: NDArray, outside: NDArray, root: NDArray) -> NDArray[np.float32]:
        arrays = laid.arrays
        own = arrays.node[nodes][:, [Node.ELEMENTS, Node.BYTES, Node.WORK, Node.ELEMENT_BYTES]]
        numbers = np.log1p(np.hstack([own, arrays.loops[arrays.row[nodes]]]))
        return np.column_stack([numbers, outside, root]).astype(np.float32)


def _members(fused: FusedProgram, results: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each node of the kernels with some results the number of the kernel among these, and the node."""
    _, places = rows_of(fused.starts, np.searchsorted(fused.result, results))
    counts = np.diff(fused.starts)[np.searchsorted(fused.result, results)]
    return np.repeat(np.arange(len(results)), counts), fused.members[places]


def rows_of(starts: NDArray[np.int64], chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the starts of chosen groups that follow one another, and the places of their rows."""
    counts = np.diff(starts)[chosen]
    return np.concatenate([[0], np.cumsum(counts)]), spread(chosen, starts[chosen], counts)[1]


def features(
    rows: NDArray[np.float64], values: NDArray[np.float32], estimates: NDArray[np.float64], machine: str
) -> NDArray[np.float32]:
    """Return `(m, len(KERNEL_FEATURES))` features.

    The share of a unit is the log of the cycles that it needs at its peak rate over the estimate of the kernel.

    Args:
      rows: `(m, KERNEL_WIDTH)` with the columns of `Kernel`.
      values: `(m, 9)` in the order of `SLOTS`.
      estimates: `(m,)` seconds by the analytical model.
      machine: its name.
    """
    rates, cycles = MACHINES[machine].array(), estimates * MACHINES[machine].hertz
    read, work = rows[:, Kernel.READ : Kernel.WORK], rows[:, Kernel.WORK : Kernel.WRITTEN]
    memory = (read.sum(axis=1) + rows[:, Kernel.WRITTEN]) / rates[Rate.MEMORY]
    matrix = 2 * rows[:, Kernel.GROUPS : Kernel.SUMS].prod(axis=1) / rates[Rate.MATRIX]
    busy = np.column_stack([memory, work.sum(axis=1) / rates[Rate.VECTOR], matrix])
    shares = np.log1p(busy) - np.log(cycles)[:, None]
    product = rows[:, [Kernel.GROUPS]] > 0
    size = np.where(product, rows[:, Kernel.ROWS + np.array(ProductAxis)], rows[:, Kernel.OUTER : Kernel.SIZE])
    cuts = np.log(np.maximum(size, 1)) - np.log(np.maximum(values[:, :3], 1))
    columns = [np.log1p(rows), np.log1p(values), np.log(cycles), shares, cuts]
    return np.column_stack(columns).astype(np.float32)


class Batch(NamedTuple):
    """Some kernels, b in all with padding, of n nodes each.

    Attributes:
      opcodes: `(b, n)`, 0 for padding.
      nodes: `(b, n, f)`.
      real: `(b, n)` False for padding.
      edges: `(b, m, 2)`; padding points to node n, which is none.
    """

    opcodes: NDArray[np.int16]
    nodes: NDArray[np.float32]
    real: NDArray[np.bool_]
    edges: NDArray[np.int16]


def batched(graphs: KernelGraphs, order: NDArray[np.int64] | None = None) -> Iterator[NDArray[np.int64]]:
    """Yield numbers of kernels that go into one batch; each is in one of them.

    Args:
      order: of the kernels; kernels of other sizes are between those of a batch.

    Raises:
      ValueError: a kernel has more nodes than fit.
    """
    sizes = np.diff(graphs.node_starts)
    order = np.arange(len(sizes)) if order is None else order
    bucket = np.searchsorted(SIZES, sizes[order])
    if bucket.max(initial=0) == len(SIZES):
        raise ValueError(f"a kernel has {sizes.max()} nodes; at most {SIZES[-1]} fit")
    for number, size in enumerate(SIZES):
        own = order[bucket == number]
        for start in range(0, len(own), BATCH_NODES // size):
            yield own[start : start + BATCH_NODES // size]


def pad(graphs: KernelGraphs, kernels: NDArray[np.int64]) -> Batch:
    """Return some kernels as a batch; its shape depends only on the bucket of the largest."""
    own = graphs.take(kernels)
    n = SIZES[int(np.searchsorted(SIZES, np.diff(own.node_starts).max()))]
    b, m = BATCH_NODES // n, 2 * n
    kernel, place = _places(own.node_starts)
    opcodes, real = np.zeros((b, n), np.int16), np.zeros((b, n), bool)
    nodes = np.zeros((b, n, len(NODE_FEATURES)), np.float32)
    opcodes[kernel, place], real[kernel, place], nodes[kernel, place] = own.opcodes, True, own.nodes
    edges = np.full((b, m, 2), n, np.int16)
    kernel, place = _places(own.edge_starts)
    few = place < m
    edges[kernel[few], place[few]] = own.edges[few]
    return Batch(opcodes, nodes, real, edges)


def _places(starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each row the number of its kernel and its place there."""
    kernel = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return kernel, np.arange(len(kernel)) - starts[kernel]
