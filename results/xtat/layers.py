"""What it costs to keep fusions within a layer: XTAT's premise, as a plugin and as a plan.

    python -m bbo_suite run --plan results/xtat/layers.py --plugin results/xtat/layers.py    # layers-runs.csv.gz

The programs carry no names of layers. So a layer is a matrix product or convolution with what follows it, up to the
next: an operation belongs to the last product on a path to it, or, where none leads to it, to its first consumer.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bbo_problems.tensor_compiler.fusion.fusion_pass import Fusion
from bbo_problems.tensor_compiler.hlo.opcodes import Kind
from bbo_problems.tensor_compiler.layout.arrays import Edge, FusionGraph
from bbo_problems.tensor_compiler.tasks.fusion_problem import FusionProblem
from bbo_suite import Plan, Space


def ends(graph: FusionGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the `(m,)` producers and consumers of the edges."""
    return np.repeat(np.arange(len(graph.kind)), np.diff(graph.starts)), graph.edge[:, Edge.CONSUMER]


def layers(graph: FusionGraph) -> NDArray[np.int64]:
    """Return the `(n,)` layer of each node, named by the product that begins it; -1 where no product is near."""
    nodes = np.arange(len(graph.kind))
    layer = np.where(graph.kind == Kind.MATRIX, nodes, -1)
    pairs = list(zip(*(side.tolist() for side in ends(graph)), strict=True))
    for producer, consumer in pairs:  # producers come before their consumers
        layer[consumer] = max(layer[consumer], layer[producer])
    first = layer < 0
    for producer, consumer in reversed(pairs):
        if first[producer] and layer[consumer] >= 0:
            layer[producer] = layer[consumer] if layer[producer] < 0 else min(layer[producer], layer[consumer])
    return layer


class WithinLayers(FusionProblem):
    """Fusion within layers: the decisions of `fusion` without those that would fuse two layers."""

    def _prepare(self, path: Path) -> None:
        super()._prepare(path)
        graph = self._laid.arrays
        layer, (producers, consumers) = layers(graph), ends(graph)
        edge = graph.edge.copy()
        edge[layer[producers] != layer[consumers], Edge.DECISION] = -1
        self._laid = replace(self._laid, arrays=graph._replace(edge=edge))
        self._fusion = Fusion(self._laid, self._machine)
        self.space = Space(np.full(len(self._fusion.columns), 2), names=self._name, values=lambda i: (False, True))
        self.default = self._fusion.default()


PROGRAMS = WithinLayers.instances
PLAN = Plan(
    [f"{family}/{name}" for name in PROGRAMS for family in ("fusion", "layers")], ["local"], budgets=(1_000,), batch=20
)
