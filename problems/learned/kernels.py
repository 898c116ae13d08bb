"""Kernels as graphs: the operations that each computes and the arrays that it reads, as a network takes them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..tensor_compiler.fusion.fusion_pass import FusedProgram, Fusion, spread
from ..tensor_compiler.graph.graph import ProgramGraph
from ..tensor_compiler.hlo.opcodes import NAMED
from ..tensor_compiler.layout.arrays import Node
from ..tensor_compiler.layout.layout_pass import LaidOutProgram

OPCODES = ("unknown", *sorted(NAMED))
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
        """Return some of the kernels, in a given order."""
        node_starts, nodes = _rows(self.node_starts, kernels)
        edge_starts, edges = _rows(self.edge_starts, kernels)
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
        kept = (edges >= 0).all(axis=1)
        ends = (np.bincount(owners, minlength=len(self)) for owners in (owner[nodes], of_edge[kept]))
        node_starts, edge_starts = (np.concatenate([[0], np.cumsum(counts)]) for counts in ends)
        shown = edges[kept].astype(np.int16)
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
    _, places = _rows(fused.starts, np.searchsorted(fused.result, results))
    counts = np.diff(fused.starts)[np.searchsorted(fused.result, results)]
    return np.repeat(np.arange(len(results)), counts), fused.members[places]


def _rows(starts: NDArray[np.int64], chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the starts of chosen groups that follow one another, and the places of their rows."""
    counts = np.diff(starts)[chosen]
    return np.concatenate([[0], np.cumsum(counts)]), spread(chosen, starts[chosen], counts)[1]
