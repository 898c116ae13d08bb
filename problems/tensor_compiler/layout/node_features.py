"""The features of the nodes of a laid-out program, for strategies that use the structure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..hardware.kernel_row import PRODUCT_COLUMNS
from ..hlo.opcodes import Kind
from .arrays import Edge, FusionGraph, Node

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


def node_features(program: FusionGraph) -> NDArray[np.float32]:
    """Return `(n, f)` features in the order of `NODE_FEATURES`."""
    n = len(program.kind)
    consumers, producers = np.diff(program.starts), np.bincount(program.edge[:, Edge.CONSUMER], minlength=n)
    products = 2 * program.loops[program.row, :PRODUCT_COLUMNS].prod(axis=1)
    sizes = [*program.node[:, [Node.ELEMENTS, Node.BYTES, Node.WORK]].T, products, program.node[:, Node.RUNS]]
    one_hot = np.eye(len(Kind))[program.kind]
    numbers = np.column_stack([*map(np.log1p, sizes), np.log1p(consumers), np.log1p(producers), program.output])
    return np.hstack([one_hot, numbers]).astype(np.float32)
