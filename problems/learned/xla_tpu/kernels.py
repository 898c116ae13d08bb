"""Kernels of the real compiler as graphs, with the features of those of the simulated one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...tensor_compiler.calibration.kernels import ScheduledKernel, bytes_in_layout, extents_of, leaf, operations_of
from ...tensor_compiler.graph import shapes
from ...tensor_compiler.graph.flatten import Operation
from ...tensor_compiler.hlo.opcodes import bytes_of
from ..kernels import KernelGraphs, number_of

ON_CHIP = 0.5
"""What stands for an array that is read from the scratchpad, or written to it, where 1 is the main memory."""


def graph_of(kernel: ScheduledKernel) -> KernelGraphs:
    """Return a kernel's operations and the arrays that it reads."""
    nodes, results, used = operations_of(kernel)
    kept = np.flatnonzero(used)
    place = np.full(len(nodes), -1)
    place[kept] = np.arange(len(kept))
    ends = [(place[operand], place[i]) for i in kept.tolist() for operand in nodes[i].operands]
    edges = np.unique(np.array(ends, np.int16).reshape(-1, 2), axis=0)
    numbers = np.array([number_of(nodes[i].opcode) for i in kept], np.int16)
    features = np.log1p([_features(nodes[i]) for i in kept])
    memory = np.array([[_read(kernel, nodes[i]), _written(kernel, i, results)] for i in kept.tolist()])
    starts = (np.array([0, len(rows)]) for rows in (kept, edges))
    node_starts, edge_starts = starts
    return KernelGraphs(node_starts, numbers, np.hstack([features, memory]).astype(np.float32), edge_starts, edges)


def _features(node: Operation) -> NDArray[np.float64]:
    shape = node.shape
    own = (shapes.elements(shape), bytes_in_layout(shape), shapes.operations(node), bytes_of(leaf(shape).dtype))
    return np.array([*own, *shapes.matrix(node), *extents_of(node)])


def _read(kernel: ScheduledKernel, node: Operation) -> float:
    number = node.source.parameter_number if node.source and node.opcode == "parameter" else None
    if number is None or number >= len(kernel.operands):
        return 0.0
    return ON_CHIP if kernel.operands[number].on_chip else 1.0


def _written(kernel: ScheduledKernel, place: int, results: list[int]) -> float:
    if place not in results:
        return 0.0
    number = results.index(place)
    on_chip = number < len(kernel.results) and kernel.results[number].on_chip
    return ON_CHIP if on_chip else 1.0
